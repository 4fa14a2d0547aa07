"""Verdict on how far a judge can be trusted on one metric, from its agreement with the experts and the interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Interval
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.experts import ExpertAgreement
from review.statistics.agreement.pair import PairAgreement
from review.statistics.agreement.statistic import Undefined

# Agreement is poor to fair below, and substantial from (J. R. Landis and G. G. Koch, 1977, Biometrics 33).
POOR, GOOD = 0.4, 0.6
# With fewer answers an interval carries little information.
MIN_ANSWERS = 20
# From this share of expert ratings on one level, kappa carries little information.
SKEWED_SHARE = 0.9
SKEWED_STATISTIC = "gwet_ac1"


class Trust(StrEnum):
    """Trust in the judge on a metric, worst first."""

    NO = "no"
    # Without agreement among the experts, there is no standard for the judge.
    EXPERTS_DISAGREE = "experts_disagree"
    CARE = "with_care"
    CANNOT_TELL = "cannot_tell_yet"
    YES = "yes"
    # Every rating was used to build the judge's prompt.
    BUILT_ON = "built_on"
    UNRATED = "not_rated"


@dataclass(frozen=True, slots=True)
class JudgeTrust:
    """Verdict with the figures behind it.

    ``value`` is the deciding ``statistic``, with its interval ``low`` to ``high``. ``experts`` is the same statistic
    among the experts, over ``shared`` answers. ``None`` means undefined, with a ``reason``.

    ``bias`` is judge minus experts if larger than half a level; ``lenient`` means that it favours the system.
    ``commonest`` is the value of at least 90% of the ratings, with their ``share``; ``exact`` is the share of equal
    values. ``more`` is the number of ratings that would settle an open verdict if the value stays; 0 if unknown or not
    needed."""

    trust: Trust
    statistic: str
    n: int
    shared: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    experts: float | None = None
    reason: str = ""
    more: int = 0
    bias: float | None = None
    lenient: bool = False
    exact: float | None = None
    commonest: float | str | None = None
    share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"trust": str(self.trust)}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> JudgeTrust:
        """Read the output of :meth:`to_dict`."""
        return cls(**{**figures, "trust": Trust(figures["trust"])})


def decisive_statistics(scale: Scale) -> tuple[str, ...]:
    """Statistics whose intervals :func:`judge_trust` reads."""
    return (headline_statistic(scale), SKEWED_STATISTIC, "pearson")


def judge_trust(
    pair: PairAgreement, experts: ExpertAgreement, scale: Scale, *, built_on: int = 0, lower_better: bool = False
) -> JudgeTrust:
    """Derive the verdict on a judge.

    ``pair`` has the intervals of :func:`decisive_statistics`, unless it compares so many answers that no interval can
    span .4 to .6. ``built_on`` counts rated answers that ``pair`` leaves out because the judge's prompt was built on
    them. ``lower_better`` marks a metric with good low values.

    *Yes*: agreement of at least .6 with a lower limit above .4. *No*: below .4 with an upper limit below .6. *Cannot
    tell yet*: the interval holds both, or fewer than 20 answers are rated. Otherwise *with care*.

    Two checks take precedence. A mean bias of more than half a level lowers kappa although the ranking may be right:
    *with care*, unless the correlation is low too. If nearly all ratings have one level, kappa is near 0 for any judge:
    AC1 decides, and a *yes* also needs kappa."""
    statistic = headline_statistic(scale)
    commonest, share = _most_common_value(pair)
    skewed = share >= SKEWED_SHARE
    decisive = SKEWED_STATISTIC if skewed else statistic
    value, low, high, reason = _statistic_with_interval(pair, decisive)
    verdict = JudgeTrust(
        Trust.UNRATED,
        decisive,
        pair.n,
        experts.n,
        value,
        low,
        high,
        experts.statistics[decisive].value,
        reason,
        exact=pair.statistics["exact"].value,
    )
    if skewed:
        verdict = replace(verdict, commonest=commonest, share=share)
    if not pair.n:
        return replace(verdict, trust=Trust.BUILT_ON if built_on else Trust.UNRATED)
    if pair.n >= MIN_ANSWERS and experts.n >= MIN_ANSWERS and verdict.experts is not None and verdict.experts < POOR:
        return replace(verdict, trust=Trust.EXPERTS_DISAGREE)
    trust, extra_ratings = _trust_by_interval(pair, decisive)
    if skewed and trust is Trust.YES and _trust_by_interval(pair, statistic)[0] is not Trust.YES:
        trust = Trust.CARE
    bias = pair.statistics["bias"].value
    if bias is not None and abs(bias) > half_level(scale) and pair.n >= MIN_ANSWERS:
        verdict = replace(verdict, bias=bias, lenient=(bias > 0) is not lower_better)
        is_correlated = (
            pair.statistics["pearson"].value is not None and _trust_by_interval(pair, "pearson")[0] is not Trust.NO
        )
        trust, extra_ratings = Trust.NO if trust is Trust.NO and not is_correlated else Trust.CARE, 0
    return replace(verdict, trust=trust, more=extra_ratings)


def half_level(scale: Scale) -> float:
    """Half the distance between two levels; on a continuous scale an eighth of its width, as on 1 to 5."""
    return 0.5 if scale.levels else scale.width / 8.0


def _most_common_value(pair: PairAgreement) -> tuple[float | str | None, float]:
    """Most common expert value and its weighted share."""
    rows = [sum(row) for row in pair.confusion or ()]
    if not rows or not sum(rows):
        return None, 0.0
    position = max(range(len(rows)), key=rows.__getitem__)
    return pair.labels[position], rows[position] / sum(rows)


def _statistic_with_interval(pair: PairAgreement, name: str) -> tuple[float | None, float | None, float | None, str]:
    """Value, interval ends and reason for the missing part of a statistic.

    If resamples do not vary, the interval is the value. Few answers get no interval; for many it need not be computed.
    """
    statistic = pair.statistics[name]
    if statistic.value is None:
        return None, None, None, statistic.reason or Undefined.NO_PAIRS
    if pair.n < MIN_ANSWERS:
        return statistic.value, None, None, ""
    reason = pair.interval_reasons.get(name, "")
    if reason == Undefined.NO_VARIATION:
        return statistic.value, statistic.value, statistic.value, ""
    low, high = pair.intervals.get(name, (None, None))
    return statistic.value, low, high, reason


def _trust_by_interval(pair: PairAgreement, name: str) -> tuple[Trust, int]:
    """Verdict from one statistic's interval, and the number of further ratings that would settle an open one."""
    (value, low, high, reason), n = _statistic_with_interval(pair, name), pair.n
    if n < MIN_ANSWERS or value is None or reason:
        return Trust.CANNOT_TELL, max(MIN_ANSWERS - n, 0)
    low, high = value if low is None else low, value if high is None else high
    if low <= POOR and high >= GOOD:
        return Trust.CANNOT_TELL, _ratings_needed(value, (low, high), n) - n
    if value >= GOOD:
        return Trust.YES, 0
    return (Trust.NO, 0) if value < POOR else (Trust.CARE, 0)


def _ratings_needed(value: float, interval: Interval, n: int) -> int:
    """Ratings after which one end of the interval leaves the doubtful range; its width scales with 1 / sqrt(n)."""
    low, high = interval
    above = n * ((value - low) / (value - POOR)) ** 2 if value > POOR else math.inf
    below = n * ((high - value) / (GOOD - value)) ** 2 if value < GOOD else math.inf
    return max(math.floor(min(above, below)) + 1, n + 1)
