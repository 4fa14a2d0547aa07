"""Refusal messages about the repair of relevance labels."""

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "repair_runs": _("Choose from two to %(most)s runs of different systems."),
    "several_question_sets": _("All runs belong to one version of one question set."),
    "repair_exists": _("There is a repair named “%(name)s” already. Choose another name."),
    "nothing_retrieved": _("There is no question for which all of these runs retrieved passages."),
    "passages_without_text": _(
        "Some retrieved passages have ids but no text that could be rated: %(count)s, the first “%(chunk)s”. Import "
        "answers with the texts of their passages, or choose a smaller k."
    ),
    "nothing_to_rate": _("Every passage of the pool has a label already: there is nothing to rate."),
    "too_few_for_first": _(
        "Hit and MRR need %(needed)s passages rated, and only %(size)s are to be. Have more rated, or leave them out."
    ),
    "repair_closed": _("This repair is closed."),
    "not_drawn": _("This passage is not among those to rate."),
    "unknown_grade": _("Choose one of the four grades."),
    "passages_left": _("You rate in this repair yourself. Rate what is left first; then you see what came of it."),
    "newer_question_set": _(
        "%(set)s has a newer version, from which labels could get lost. Make a repair from runs on the newest version."
    ),
    "no_new_labels": _("Nobody has found a further relevant passage that has an id."),
}
