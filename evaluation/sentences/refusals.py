"""The sentence of every action that is refused in the present state, and what to do instead."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

IMPORTS = {
    "bad_definition": _(
        "“%(definition)s” defines no scale. Write NAME=1..5, NAME=0..1:real, NAME=-2..2, NAME=bool or NAME=class:a|b, "
        "each name once."
    ),
}

RUNS = {
    "key_missing": _("The environment variable %(variable)s with the endpoint's key is not set."),
    "nothing_failed": _("Nothing has failed, so there is nothing to retry."),
    "run_not_retryable": _("A draft or cancelled run cannot be retried."),
}

DRAWS = {
    "empty_frame": _("There is no answer to draw from."),
    "unknown_keys": _("These answers are not in the frame: %(keys)s."),
    "no_fail_threshold": _("Say below which value an answer counts as failed."),
    "fails_exceed_size": _("%(fails)s answers failed, more than the %(size)s to be drawn. Draw more."),
    "no_spread": _("Drawing by uncertainty needs repeats, a jury or token probabilities."),
    "draw_too_small": _("%(strata)s strata need at least %(needed)s answers. Draw more, or use fewer strata."),
}

SENTENCES = {**IMPORTS, **RUNS, **DRAWS}
