"""Refusal messages about the repair of relevance labels."""

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "repair_runs": _("Choose 2 to %(most)s runs of different systems."),
    "several_question_sets": _("All runs must use the same version of one question set."),
    "repair_exists": _("A repair named “%(name)s” already exists. Choose another name."),
    "nothing_retrieved": _("There is no question for which all of these runs retrieved passages."),
    "passages_without_text": _(
        "Some retrieved passages have IDs but no text to rate: %(count)s, the first “%(chunk)s”. "
        "Import answers with passage texts, or choose a smaller k."
    ),
    "nothing_to_rate": _("Every passage in the pool already has a label. There is nothing to rate."),
    "too_few_for_first": _(
        "Hit and MRR need %(needed)s rated passages, but only %(size)s are to be rated. Rate more, or leave them out."
    ),
    "repair_closed": _("This repair is closed."),
    "not_drawn": _("This passage is not one of those to rate."),
    "unknown_grade": _("Choose one of the four grades."),
    "passages_left": _("You are a reviewer in this repair. Rate your remaining passages first to see the results."),
    "newer_question_set": _(
        "%(set)s has a newer version whose labels could be lost. Create a repair from runs on the newest version."
    ),
    "no_new_labels": _("No new relevant passages with an ID were found."),
}
