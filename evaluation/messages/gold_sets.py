"""Refusal messages about gold sets, hold-out tests, prompt searches and drift checks."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "gold_name": _("A gold set needs a name of 1 to %(limit)s characters."),
    "gold_exists": _("A gold set “%(name)s” already exists. Extend it, or choose another name."),
    "gold_unknown": _("The gold set “%(name)s” doesn't exist yet. Create it first."),
    "gold_no_labels": _(
        "No ratings qualify. A gold set takes blind first ratings with numbers that aren't example "
        "ratings and that it doesn't contain yet. Ask experts to rate answers in a blind queue."
    ),
    "gold_old_version": _("%(gold)s has a newer version. Use that one."),
    "gold_other_metrics": _("The hold-out of %(gold)s has no labels for metrics of “%(family)s”."),
    "gold_changed": _(
        "%(gold)s differs from its frozen state in %(places)s places, so its labels can't be trusted. "
        "Find out where the database was changed."
    ),
    "hold_out_too_small": _(
        "A hold-out test needs %(needed)s answers in %(needed_groups)s question groups. This hold-out has "
        "%(answers)s in %(groups)s. Ask experts to rate more answers blind, then add their ratings to the gold "
        "set."
    ),
    "hold_out_seen": _(
        "%(rubric)s has already judged %(answers)s hold-out answers in runs that everyone can read. "
        "Only a version that hasn't seen them can be tested on them."
    ),
    "look_open": _("Hold-out test %(look)s of %(rubric)s hasn't finished. Finish it with the same command first."),
    "rubric_other_family": _("This page edits “%(family)s” in “%(language)s”. Keep both values in the text."),
    "answer_not_open": _("This answer isn't an example or validation answer of the gold set."),
    "nothing_open": _("The gold set has no unlocked answers with labels for this rubric."),
    "examples_of_steps": _(
        "“%(family)s” judges parts of an answer, but the labels are for whole answers, so examples and "
        "score maps don't work. Choose rewriting instead."
    ),
    "map_of_map": _("%(rubric)s already has a score map. Retire it first."),
    "search_rounds": _("Choose 1 to %(limit)s rounds for rewriting a rubric."),
    "search_in_hands": _("Another process is running %(search)s. Wait for it to finish."),
    "look_in_hands": _("Hold-out test %(look)s is running. Wait for it to finish."),
    "nothing_sealed": _("The project has no gold set in use, so no labels are sealed."),
    "drafter_opened": _(
        "You opened the sealed labels of %(gold)s, so you can't draft or propose versions of "
        "“%(family)s”. Ask someone who hasn't."
    ),
    "prompt_quotes_hold_out": _(
        "%(rubric)s repeats text of locked answers or questions, or names several of their ids. Remove "
        "the copied parts and test the new version."
    ),
    "gold_retired": _("%(gold)s is retired. It can't be extended or used for hold-out tests."),
    "gold_not_retired": _("Results of hold-out tests on %(gold)s are shown only after it is retired."),
    "reference_not_approved": _("The active version for %(judge)s isn't approved on %(gold)s."),
    "beside_not_better": _(
        "A test against another judge can only show that this judge is no worse. Choose that claim."
    ),
    "anchors_not_approved": _("%(rubric)s isn't approved. Only approved versions are monitored."),
    "anchors_not_in_force": _("%(rubric)s isn't in force. Only versions in force are monitored."),
    "anchors_too_few": _(
        "The hold-out test has verdicts on %(answers)s answers. A drift check needs at least %(least)s."
    ),
    "look_repeats": _("Judge each answer 1 to %(limit)s times."),
    "judge_too_slow": _("The judge didn't answer within %(seconds)s seconds. Check the endpoint and its log."),
    "judge_away": _(
        "The judge can't be reached now (%(reason)s). Finished work is kept. Use the same command to continue."
    ),
    "rubric_embeds": _("“%(family)s” needs a run's embeddings, so it can't be judged outside a run."),
}
