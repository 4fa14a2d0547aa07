"""The sentence of every reason why a figure, an agreement statistic or a corrected score is not there."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

FIGURES = {
    "not_finished": _("The run has not finished."),
    "no_values": _("There is no value to average."),
    "not_reviewed": _("No expert has rated it yet."),
    "not_both_rated": _("Experts have not rated the same parts of both runs."),
    "rules_only": _("No judge was asked: there are only the rules."),
    "served_model": _(
        "Different models answered under a judge's name, so that the difference may be theirs. Have the same model"
        " judge both runs, or ask for the gate across models."
    ),
    "partial": _("Not every part of the overall score was computed."),
    "classes": _("Classes have no mean; see their shares."),
    "repeats_tied": _("The judge's repeats are split evenly over several classes."),
}

AGREEMENT = {
    "no_pairs": _("No answer has both a judge's and an expert's value."),
    "judge_constant": _("The judge gave the same value everywhere."),
    "expert_constant": _("The experts gave the same value everywhere."),
    "one_value_only": _("Only one value occurs, so chance agreement is complete."),
    "no_expert_positive": _("The experts called nothing acceptable."),
    "no_expert_negative": _("The experts called everything acceptable."),
    "no_judge_positive": _("The judge called nothing acceptable."),
    "no_positive": _("Neither judge nor experts called anything acceptable."),
    "one_expert_class": _("The experts used one class only."),
    "yes_no_only": _("Exists for yes/no metrics only."),
    "classes_have_no_order": _("Classes have no order."),
    "needs_binning": _("Numbers without levels need bins first."),
    "no_direction": _("Has no direction among equals."),
    "too_few_raters": _("No answer was rated by two experts."),
    "too_few_groups": _("There is only one group of questions."),
    "no_variation": _("The values do not vary, so there is no interval."),
    "often_undefined": _("Undefined in too many resamples."),
    "few_groups": _("Fewer than 20 groups of questions: take the interval with care."),
}

CORRECTION = {
    "too_few_labels": _("Too few answers are rated."),
    "stratum_too_few_labels": _("A part of the sample has fewer than two ratings."),
    "non_response": _("More than a tenth of the answers served got no rating."),
    "not_estimable": _("The ratings do not vary, so nothing can be said about the others."),
    "no_probability": _("The rated answers were not drawn with known probabilities."),
    "small_frame": _("Fewer than 20 answers: rate all of them."),
    "components_withheld": _("A part of the overall score cannot be corrected yet."),
    "few_off_commonest": _("Fewer than five ratings differ from the commonest."),
    "failed_stratum_bounds": _(
        "The judge failed on answers of which too few are rated; the interval allows for any value."
    ),
    "clipped": _("Cut at the end of the scale."),
}

SENTENCES = {**FIGURES, **AGREEMENT, **CORRECTION}
