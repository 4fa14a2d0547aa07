"""What a report says of licences, in words."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from evaluation.messages.sentences import explain_lapse
from review.calibration.licences import LicenceState, RunLicence

STATES: dict[LicenceState, str | Promise] = {
    LicenceState.LICENSED: _("licensed"),
    LicenceState.STALE: _("stale"),
    LicenceState.NONE: _("none"),
}


def licence_state(one: RunLicence) -> str:
    """Its state in a word."""
    return str(STATES[one.state])


def licence_reason(one: RunLicence) -> str:
    """Why it does not hold, or the proof that it stands on."""
    if one.state is LicenceState.NONE:
        return str(_("No version of this prompt has proved itself for these questions."))
    if one.lapses:
        return " ".join(explain_lapse(lapse.code, lapse.params) for lapse in one.lapses)
    return str(_("Proved by %(look)s on %(answers)d answers.")) % {"look": one.look, "answers": one.answers}
