"""What a comparison of two runs says, also in words, and what would settle it where it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext

from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason
from review.comparisons.difference import RunDifference
from review.reports.figure import Figure, Withheld
from review.reports.gate import GateOn, margin_text
from review.reports.retrieval import reads_labels
from review.statistics.correction.frame import LEAST_LABELS
from review.statistics.paired_tests.gate import (
    Resource,
    Settling,
    Verdict,
    lies_within,
    settle_by_labels,
    settle_by_questions,
    verdict_of,
)
from review.statistics.paired_tests.gatekeeping import Multiplicity


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """``verdict`` on one score; ``reason`` is the code that says why where the score has no difference or no interval.
    ``settling`` is what would bring no difference to the edge of the interval, were the value to stay. ``alike_within``
    is the stated margin where the whole interval lies inside it, also of a run that is better or worse by less."""

    verdict: Verdict
    reason: str = ""
    settling: Settling | None = None
    alike_within: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        settling = self.settling
        return {
            "verdict": str(self.verdict),
            **({"reason": self.reason} if self.reason else {}),
            **({} if self.alike_within is None else {"alike_within": self.alike_within}),
            **({"settle": {"by": str(settling.resource), "needed": settling.needed}} if settling else {}),
        }


def _told(low: float, high: float, margin: float | None) -> RunVerdict:
    """What an interval says, with a margin or without one."""
    verdict = verdict_of(low, high)
    if margin is None or not lies_within(low, high, margin):
        return RunVerdict(verdict)
    return RunVerdict(Verdict.ALIKE if verdict is Verdict.CANNOT_TELL else verdict, alike_within=margin)


def judge_only_verdict(one: RunDifference) -> RunVerdict:
    """On what the judge and the rules said."""
    paired = one.overall
    if paired is None or paired.low is None or paired.high is None:
        return RunVerdict(Verdict.CANNOT_TELL, "no_values" if paired is None else "no_variation")
    found = _told(paired.low, paired.high, one.margin)
    if found.verdict is not Verdict.CANNOT_TELL:
        return found
    half = (paired.high - paired.low) / 2.0
    return replace(found, settling=settle_by_questions(paired.groups, half, abs(paired.value)))


def corrected_verdict(one: RunDifference) -> RunVerdict:
    """On what the experts would have said of both."""
    figure = one.corrected
    if figure.value is None or figure.low is None or figure.high is None:
        reason = figure.withheld or figure.no_interval
        return RunVerdict(Verdict.CANNOT_TELL, reason, labels_missing(figure))
    found = _told(figure.low, figure.high, one.margin)
    if found.verdict is not Verdict.CANNOT_TELL:
        return found
    return replace(found, settling=settle_corrected(one, abs(figure.value)))


def settle_corrected(one: RunDifference, distance: float) -> Settling | None:
    """What would make the corrected difference's interval as narrow as ``distance``: labels of both runs together, or
    questions where their own variation alone is wider."""
    groups = one.overall.groups if one.overall else 0
    wide, narrow = one.corrected, one.corrected_this_run
    labels = int(wide.extra.get("labels") or 0)
    if not labels or narrow.value is None:
        return settle_by_questions(groups, half_width(wide), distance)
    return settle_by_labels(labels, wide.n, groups, half_width(narrow), half_width(wide), distance)


def labels_missing(figure: Figure) -> Settling | None:
    """The rated answers in all that a withheld corrected figure needs to be shown; ``None`` where labels are not what
    is missing."""
    if figure.withheld in {Withheld.NOT_REVIEWED, Withheld.CARRIED}:
        return Settling.by_labels(LEAST_LABELS)
    missing = figure.extra.get("missing") or {}
    parts = [missing, *(missing.get("components") or {}).values()]
    more = max((int(part["labels"]) for part in parts if part.get("labels")), default=0)
    return Settling.by_labels(int(figure.extra.get("labels") or 0) + more) if more else None


def half_width(figure: Figure) -> float:
    """Half the interval of a figure; 0 without one."""
    return 0.0 if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0


NO_OVERALL = "no_overall"  # of a profile whose parts are not summed


def p_text(value: float | None) -> str:
    """A p-value with three digits; none is nought."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def family_sentence(tested: Multiplicity) -> str:
    """How many overall scores are compared, in which order, and how often any verdict may be false."""
    facts = {"error": f"{100 * tested.error:.0f}%", "size": tested.size, "each": f"{100 * tested.confidence:.1f}%"}
    order = gettext("A metric gets a verdict only where its overall score differs.")
    if tested.size < 2:
        said = gettext("The chance of a false better or worse is at most %(error)s.") % facts
    else:
        said = (
            gettext(
                "Adjusted for %(size)d overall scores: the chance of even one false better or worse is at most "
                "%(error)s, so the interval of each is a %(each)s interval."
            )
            % facts
        )
    return f"{said} {order}"


def sentences(one: RunDifference) -> list[str]:
    """The verdict that can be trusted, the other, and what to do next, the runs named by their numbers."""
    names = {
        "run": gettext("Run %(id)d") % {"id": one.run_id},
        "baseline": gettext("Run %(id)d") % {"id": one.baseline_id},
    }
    return [say for tell in (lead_sentence, other_sentence, next_sentence) if (say := tell(one, names))]


EXACT = frozenset({NO_OVERALL, "no_parts", Withheld.RULES_ONLY})  # no judge is in what was compared


def lead_sentence(one: RunDifference, names: dict[str, str]) -> str:
    """The verdict that can be trusted: what the experts would have said of both, or that this is not known; what was
    computed where no judge is in it."""
    found = corrected_verdict(one)
    if said := _retrieval_sentence(one, names):
        return said
    if found.reason in EXACT:
        return judge_only_sentence(one, names)
    said = corrected_sentence(one, names)
    if found.reason == Withheld.NOT_REVIEWED:
        said = gettext("Not known yet which is better: no expert has rated these answers.")
        said = " ".join([said, *_settled(found)])
    if one.retrieval and any(map(reads_labels, one.parts)):
        said += " " + gettext("Retrieval has weight in the score and counts passages without a label as misses.")
    return said


def _repaired(one: RunDifference) -> Figure | None:
    """The corrected difference of nDCG, where no judge is in what was compared: it says more than scores that count
    passages without a label as misses."""
    parts, reason = [reads_labels(name) for name in one.parts], corrected_verdict(one).reason
    leads = all(parts) if reason == Withheld.NOT_REVIEWED else reason in EXACT and (any(parts) or not parts)
    if not (one.retrieval and leads):
        return None
    return next((metric.corrected for metric in one.metrics if metric.name == GateOn.NDCG), None)


def _verdict_on(figure: Figure, margin: float | None) -> RunVerdict:
    if figure.low is None or figure.high is None:
        return RunVerdict(Verdict.CANNOT_TELL)
    return _told(figure.low, figure.high, margin)


def _retrieval_sentence(one: RunDifference, names: dict[str, str]) -> str:
    if (figure := _repaired(one)) is None:
        return ""
    if figure.low is None or figure.high is None:
        why = {"why": explain_reason(figure.withheld or figure.no_interval)}
        return gettext("By nDCG, corrected for passages without a label: cannot tell. %(why)s") % why
    found = _verdict_on(figure, one.margin)
    if found.verdict is Verdict.CANNOT_TELL:
        return gettext("By nDCG, corrected for passages without a label: cannot tell.")
    said = {"said": _sure(found, figure.low, figure.high, names)}
    return gettext("By nDCG, corrected for passages without a label: %(said)s") % said


def other_sentence(one: RunDifference, names: dict[str, str]) -> str:
    """What the judge's scores say alone, with the reason why that does not lead; empty where it leads."""
    if _repaired(one) is not None and one.overall is not None:
        said = gettext("By the labels alone, where passages without one count as misses: %(said)s")
        return said % {"said": judge_only_sentence(one, names)}
    if corrected_verdict(one).reason in EXACT or _repaired(one) is not None:
        return ""
    said = gettext("Judge scores only (judge error not included): %(said)s")
    return said % {"said": judge_only_sentence(one, names)}


def next_sentence(one: RunDifference, names: dict[str, str]) -> str:
    """The one thing to do next; empty where nothing in the runs can be compared."""
    found = corrected_verdict(one)
    if (repaired := _repaired(one)) is not None:
        found = _verdict_on(repaired, one.margin)
        if found.verdict is Verdict.CANNOT_TELL:
            return gettext("Next: ask experts to rate more passages of the repair.")
    elif found.reason in EXACT:
        found = judge_only_verdict(one)
        if one.overall is None:
            return ""
    if found.verdict is Verdict.BETTER:
        if not one.worse:
            return gettext("Next: take %(run)s.") % names
        return gettext("Next: check the questions that dropped most, then take %(run)s.") % names
    if found.verdict is Verdict.WORSE:
        if not one.worse:  # experts see what the judge does not
            return gettext("Next: keep %(baseline)s.") % names
        return gettext("Next: keep %(baseline)s. Check the questions that dropped most to see why.") % names
    if found.verdict is Verdict.ALIKE:
        return gettext("Next: choose by something else, such as cost or time.")
    if found.settling is None and found.reason:
        return gettext("Next: read the questions that changed most.")
    if found.settling is not None and found.settling.resource is not Resource.QUESTIONS:
        return gettext("Next: have experts review a sample of both runs.")
    return gettext("Next: add questions, or treat the two as equal if a difference this small doesn't matter.")


def judge_only_sentence(one: RunDifference, names: dict[str, str]) -> str:
    """What the judge's scores say; ``names`` are those of ``run`` and ``baseline``."""
    overall, found = one.overall, judge_only_verdict(one)
    if overall is None:
        if one.corrected.withheld == NO_OVERALL:
            return explain_reason(NO_OVERALL)
        return gettext("The runs have no question of any part of the score in common.")
    if overall.low is None or overall.high is None:
        if not overall.value:
            return gettext("Every score is the same for both.")
        return gettext("The scores differ in the same way everywhere, so nothing tells how sure that is.")
    if found.verdict is not Verdict.CANNOT_TELL:
        return _sure(found, overall.low, overall.high, names)
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
        return " ".join(
            [gettext("By the corrected scores: cannot tell."), _between(figure.low, figure.high), *_settled(found)]
        )
    said = {"said": _sure(found, figure.low, figure.high, names)}
    return gettext("By the corrected scores: %(said)s") % said


def _between(low: float, high: float) -> str:
    ends = {"low": numbers.signed(low, 3), "high": numbers.signed(high, 3)}
    return gettext("The difference is between %(low)s and %(high)s on questions like these.") % ends


def _sure(found: RunVerdict, low: float, high: float, names: dict[str, str]) -> str:
    if found.verdict is Verdict.ALIKE:
        return _alike(low, high, found.alike_within or 0.0, names)
    facts = {**names, "low": f"{min(abs(low), abs(high)):.3f}", "high": f"{max(abs(low), abs(high)):.3f}"}
    if found.verdict is Verdict.BETTER:
        said = gettext("%(run)s is better by %(low)s to %(high)s on questions like these.") % facts
    else:
        said = gettext("%(run)s is worse by %(low)s to %(high)s on questions like these.") % facts
    if found.alike_within is None:
        return said
    alike = gettext("The two are alike within %(margin)s.") % {"margin": margin_text(found.alike_within)}
    return f"{said} {alike}"


def _alike(low: float, high: float, margin: float, names: dict[str, str]) -> str:
    facts = {"margin": margin_text(margin), "low": f"{low:+.3f}", "high": f"{high:+.3f}"}
    said = gettext(
        "%(run)s and %(baseline)s are alike within %(margin)s on questions like these: the difference lies between "
        "%(low)s and %(high)s."
    )
    return said % {**names, **facts}


def _settled(found: RunVerdict) -> list[str]:
    if found.settling is None:
        too_small = gettext("The observed difference is too small to tell how many questions would decide it.")
        return [] if found.reason else [too_small]
    needed = {"count": found.settling.needed}
    if found.settling.resource is Resource.QUESTIONS:
        return [gettext("About %(count)d questions in all would decide it if the value stays.") % needed]
    if found.reason:
        return [gettext("About %(count)d rated answers are needed for a corrected score.") % needed]
    return [gettext("About %(count)d rated answers of both runs together would decide it if the value stays.") % needed]
