"""Refusal messages about gold sets, hold-out tests, prompt searches and drift checks."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "gold_name": _("A gold set needs a name of 1 to %(limit)s characters."),
    "gold_exists": _("There is a gold set “%(name)s” already. Let it grow, or choose another name."),
    "gold_unknown": _("There is no gold set “%(name)s” yet. Create it first."),
    "gold_no_labels": _(
        "No rating may enter: what counts are first ratings that were given blind, with numbers, and not for show, and "
        "that the gold set does not hold yet. Have answers rated in a blind queue."
    ),
    "gold_old_version": _("%(gold)s has a newer version. Look at that one."),
    "gold_other_metrics": _("The hold-out of %(gold)s has no labels of metrics that “%(family)s” gives."),
    "gold_changed": _(
        "%(gold)s is not as it was frozen, in %(places)s places: its labels cannot be trusted. Look where the database "
        "was changed."
    ),
    "hold_out_too_small": _(
        "A hold-out test needs %(needed)s answers in %(needed_groups)s groups; this hold-out has %(answers)s in "
        "%(groups)s. Ask experts to rate more answers blind, then add their ratings to the gold set."
    ),
    "hold_out_seen": _(
        "%(rubric)s has judged %(answers)s answers of the hold-out in runs that everybody can read. Only a version "
        "that has not seen them can prove itself there."
    ),
    "look_open": _("%(look)s, with %(rubric)s, has not ended. Let it end with the same command first."),
    "rubric_other_family": _("This is the place of “%(family)s” in “%(language)s”. Keep both as they are in the text."),
    "answer_not_open": _("This answer is not among the examples and validation answers of the gold set."),
    "nothing_open": _("The gold set has no open answers with labels of this rubric."),
    "examples_of_steps": _(
        "“%(family)s” asks about the parts of an answer, and the labels are of whole answers: neither examples nor a "
        "map of scores fit it. Have it rewritten instead."
    ),
    "map_of_map": _("%(rubric)s has a map of scores already. Retire it first."),
    "search_rounds": _("A rubric is rewritten in 1 to %(limit)s rounds."),
    "search_in_hands": _("%(search)s is in the hands of another process. Wait for it."),
    "look_in_hands": _("%(look)s is under way. Wait for its answer."),
    "nothing_sealed": _("The project has no gold set in use: no labels are sealed."),
    "drafter_opened": _(
        "You opened the sealed labels of %(gold)s, so you cannot draft or propose versions of “%(family)s”. Ask "
        "somebody who has not."
    ),
    "prompt_quotes_hold_out": _(
        "%(rubric)s repeats text of locked answers or questions, or names several of their ids. Take out what was "
        "copied from answers and questions, and test the new version."
    ),
    "gold_retired": _("%(gold)s is retired: nobody looks at it any more, and it does not grow."),
    "gold_not_retired": _("What looks saw of the hold-out of %(gold)s is told once it is retired, not before."),
    "beside_not_proved": _("What %(judge)s works by has not proved itself on %(gold)s."),
    "beside_not_better": _("Beside another judge it can only be shown that one is not worse; choose that claim."),
    "anchors_not_proved": _("%(rubric)s has not proved itself; only what was proved is watched."),
    "anchors_not_in_force": _("%(rubric)s is not in force; only what is in force is watched."),
    "anchors_too_few": _("The hold-out test has verdicts on %(answers)s answers; a check needs %(least)s at least."),
    "look_repeats": _("An answer is judged 1 to %(limit)s times."),
    "judge_away": _("The judge cannot be asked now (%(reason)s). What is done is kept; the same command goes on."),
    "rubric_embeds": _("“%(family)s” needs embeddings of a run and cannot be judged outside of one."),
}
