"""The verdict of a comparison as a sentence."""

from __future__ import annotations

from django.utils.translation import gettext

from evaluation.wording.messages import explain_reason
from review.comparisons.difference import RunDifference
from review.comparisons.verdict import RunVerdict, corrected_verdict, judge_only_verdict
from review.statistics.paired_tests.gate import Resource, Verdict

NO_OVERALL = "no_overall"  # of a profile whose parts are not summed


def p_text(value: float | None) -> str:
    """A p-value with three digits; none is nought."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def sentences(one: RunDifference) -> list[str]:
    """Both sentences, the runs named by their numbers; without one that has nothing to say."""
    names = {
        "run": gettext("Run %(id)d") % {"id": one.run_id},
        "baseline": gettext("Run %(id)d") % {"id": one.baseline_id},
    }
    return [said for said in (judge_only_sentence(one, names), corrected_sentence(one, names)) if said]


def judge_only_sentence(one: RunDifference, names: dict[str, str]) -> str:
    """What the judge's scores say; ``names`` are those of ``run`` and ``baseline``."""
    overall, found = one.overall, judge_only_verdict(one)
    if overall is None:
        if one.corrected.withheld == NO_OVERALL:
            return explain_reason(NO_OVERALL)
        return gettext("The runs have no question of any part of the score in common.")
    if overall.low is None or overall.high is None:
        return gettext("The scores differ in the same way everywhere, so nothing tells how sure that is.")
    if found.verdict is not Verdict.CANNOT_TELL:
        return _sure(found.verdict, overall.low, overall.high, names)
    least = {"least": f"{overall.detectable or 0.0:.3f}"}
    said = gettext("Cannot tell. A difference of %(least)s or more would be found in 4 of 5 such comparisons.") % least
    return " ".join([said, *_settled(found)])


def corrected_sentence(one: RunDifference, names: dict[str, str]) -> str:
    """What the experts would have said of both, and what is missing where that is not known; empty where no expert
    has rated either run, or there is no overall score."""
    figure, found = one.corrected, corrected_verdict(one)
    if found.reason in ("not_reviewed", NO_OVERALL):
        return ""
    if figure.low is None or figure.high is None:
        why = {"why": explain_reason(found.reason)}
        return " ".join([gettext("By the corrected scores: cannot tell. %(why)s") % why, *_settled(found)])
    if found.verdict is Verdict.CANNOT_TELL:
        return " ".join([gettext("By the corrected scores: cannot tell."), *_settled(found)])
    said = {"said": _sure(found.verdict, figure.low, figure.high, names)}
    return gettext("By the corrected scores: %(said)s") % said


def _sure(verdict: Verdict, low: float, high: float, names: dict[str, str]) -> str:
    ends = {"low": f"{min(abs(low), abs(high)):.3f}", "high": f"{max(abs(low), abs(high)):.3f}"}
    if verdict is Verdict.BETTER:
        return gettext("%(run)s is better by %(low)s to %(high)s on questions like these.") % {**names, **ends}
    return gettext("%(run)s is worse by %(low)s to %(high)s on questions like these.") % {**names, **ends}


def _settled(found: RunVerdict) -> list[str]:
    if found.settling is None:
        return []
    needed = {"count": found.settling.needed}
    if found.settling.resource is Resource.QUESTIONS:
        return [gettext("About %(count)d questions in all would settle it if the value stays.") % needed]
    if found.reason:
        return [gettext("With about %(count)d rated answers in all there is a corrected score to look at.") % needed]
    return [gettext("About %(count)d rated answers of both runs together would settle it if the value stays.") % needed]
