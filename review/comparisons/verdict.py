"""What a comparison of two runs says, and what would settle it where it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from review.comparisons.difference import RunDifference
from review.reports.figure import Figure, Withheld
from review.statistics.correction.assess import LEAST_LABELS
from review.statistics.paired_tests.gate import Settling, Verdict, settle_by_labels, settle_by_questions, verdict_of


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """``verdict`` on one score; ``reason`` is the code that says why where the score has no difference or no interval.
    ``settling`` is what would bring no difference to the edge of the interval, were the value to stay."""

    verdict: Verdict
    reason: str = ""
    settling: Settling | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        settling = self.settling
        return {
            "verdict": str(self.verdict),
            **({"reason": self.reason} if self.reason else {}),
            **({"settle": {"by": str(settling.resource), "needed": settling.needed}} if settling else {}),
        }


def judge_only_verdict(one: RunDifference) -> RunVerdict:
    """On what the judge and the rules said."""
    paired = one.overall
    if paired is None or paired.low is None or paired.high is None:
        return RunVerdict(Verdict.CANNOT_TELL, "no_values" if paired is None else "no_variation")
    found = verdict_of(paired.low, paired.high)
    if found is not Verdict.CANNOT_TELL:
        return RunVerdict(found)
    half = (paired.high - paired.low) / 2.0
    return RunVerdict(found, settling=settle_by_questions(paired.groups, half, abs(paired.value)))


def corrected_verdict(one: RunDifference) -> RunVerdict:
    """On what the experts would have said of both."""
    figure = one.corrected
    if figure.value is None or figure.low is None or figure.high is None:
        reason = figure.withheld or figure.no_interval
        return RunVerdict(Verdict.CANNOT_TELL, reason, labels_missing(figure))
    found = verdict_of(figure.low, figure.high)
    if found is not Verdict.CANNOT_TELL:
        return RunVerdict(found)
    return RunVerdict(found, settling=settle_corrected(one, abs(figure.value)))


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
    if figure.withheld == Withheld.NOT_REVIEWED:
        return Settling.by_labels(LEAST_LABELS)
    missing = figure.extra.get("missing") or {}
    parts = [missing, *(missing.get("components") or {}).values()]
    more = max((int(part["labels"]) for part in parts if part.get("labels")), default=0)
    return Settling.by_labels(int(figure.extra.get("labels") or 0) + more) if more else None


def half_width(figure: Figure) -> float:
    """Half the interval of a figure; 0 without one."""
    return 0.0 if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0
