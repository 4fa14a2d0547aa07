"""How far a judge can be trusted on one metric, from its agreement with the experts and the interval of that."""

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

POOR, GOOD = 0.4, 0.6  # poor to fair below, substantial from (J. R. Landis and G. G. Koch, 1977, Biometrics 33)
FEW = 20  # with fewer answers an interval says little
SKEWED = 0.9  # share of the experts' ratings on one level from which kappa says little
ON_SKEWED = "gwet_ac1"


class Trust(StrEnum):
    """How far the judge can be trusted on a metric, the worst first."""

    NO = "no"
    EXPERTS_DISAGREE = "experts_disagree"  # so there is no standard to compare the judge with
    CARE = "with_care"
    CANNOT_TELL = "cannot_tell_yet"
    YES = "yes"
    BUILT_ON = "built_on"  # every rating was used to build the judge's prompt
    UNRATED = "not_rated"


@dataclass(frozen=True, slots=True)
class JudgeTrust:
    """The verdict with the figures it rests on.

    ``value``, with its interval ``low`` to ``high``, is the ``statistic`` that decides; ``experts`` is the experts'
    agreement with each other by the same one, over ``shared`` answers. ``None``: undefined, with its ``reason``.
    ``bias`` is judge minus experts where that is more than half a level; ``lenient``: in favour of the system.
    ``commonest`` is the value that at least 90% of the ratings have, and ``share`` that share; ``exact`` is the share
    of equal values. ``more`` ratings would settle what cannot be told yet, if the value stays; 0 where that is not
    known or not the question.
    """

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
        """All fields as JSON values."""
        return asdict(self) | {"trust": str(self.trust)}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> JudgeTrust:
        """Read what :meth:`to_dict` wrote."""
        return cls(**{**figures, "trust": Trust(figures["trust"])})


def decisive_statistics(scale: Scale) -> tuple[str, ...]:
    """The statistics whose intervals :func:`judge_trust` reads."""
    return (headline_statistic(scale), ON_SKEWED, "pearson")


def judge_trust(
    pair: PairAgreement, experts: ExpertAgreement, scale: Scale, *, built_on: int = 0, lower_better: bool = False
) -> JudgeTrust:
    """The verdict on a judge. ``pair`` has the intervals of :func:`decisive_statistics`, unless it compares so many
    answers that none can span .4 to .6; ``built_on`` counts rated
    answers that were left out of it because the judge's prompt was built on them; ``lower_better``: low values of the
    metric are good.

    *Yes*: agreement of at least .6 with a lower limit above .4. *No*: below .4 with an upper limit below .6. *Cannot
    tell yet*: the interval holds both, or fewer than 20 answers are rated. Else *with care*. Two things go first.
    A mean bias of more than half a level lowers kappa although the ranking may be right: *with care*, unless the
    correlation is low too. Where nearly all ratings lie on one level kappa is near 0 whatever the judge does: AC1
    decides, and a *yes* needs kappa as well.
    """
    statistic = headline_statistic(scale)
    commonest, share = _skew(pair)
    skewed = share >= SKEWED
    decisive = ON_SKEWED if skewed else statistic
    value, low, high, reason = _figure(pair, decisive)
    found = JudgeTrust(
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
        found = replace(found, commonest=commonest, share=share)
    if not pair.n:
        return replace(found, trust=Trust.BUILT_ON if built_on else Trust.UNRATED)
    if pair.n >= FEW and experts.n >= FEW and found.experts is not None and found.experts < POOR:
        return replace(found, trust=Trust.EXPERTS_DISAGREE)
    trust, more = _by_interval(pair, decisive)
    if skewed and trust is Trust.YES and _by_interval(pair, statistic)[0] is not Trust.YES:
        trust = Trust.CARE
    bias = pair.statistics["bias"].value
    if bias is not None and abs(bias) > half_level(scale) and pair.n >= FEW:
        found = replace(found, bias=bias, lenient=(bias > 0) is not lower_better)
        ranks = pair.statistics["pearson"].value is not None and _by_interval(pair, "pearson")[0] is not Trust.NO
        trust, more = Trust.NO if trust is Trust.NO and not ranks else Trust.CARE, 0
    return replace(found, trust=trust, more=more)


def half_level(scale: Scale) -> float:
    """Half the distance of two levels; on a scale without levels an eighth of its width, as on 1 to 5."""
    return 0.5 if scale.levels else scale.width / 8.0


def _skew(pair: PairAgreement) -> tuple[float | str | None, float]:
    """The commonest value of the experts and its share by weight."""
    rows = [sum(row) for row in pair.confusion or ()]
    if not rows or not sum(rows):
        return None, 0.0
    at = max(range(len(rows)), key=rows.__getitem__)
    return pair.labels[at], rows[at] / sum(rows)


def _figure(pair: PairAgreement, name: str) -> tuple[float | None, float | None, float | None, str]:
    """Value, interval and the reason for what is missing of a statistic. Without variation over resamples the interval
    is the value alone. Few answers have none; of many it need not be computed."""
    statistic = pair.statistics[name]
    if statistic.value is None:
        return None, None, None, statistic.reason or Undefined.NO_PAIRS
    if pair.n < FEW:
        return statistic.value, None, None, ""
    reason = pair.interval_reasons.get(name, "")
    if reason == Undefined.NO_VARIATION:
        return statistic.value, statistic.value, statistic.value, ""
    low, high = pair.intervals.get(name, (None, None))
    return statistic.value, low, high, reason


def _by_interval(pair: PairAgreement, name: str) -> tuple[Trust, int]:
    """The verdict by one statistic's interval alone, and how many more ratings would settle what cannot be told."""
    (value, low, high, reason), n = _figure(pair, name), pair.n
    if n < FEW or value is None or reason:
        return Trust.CANNOT_TELL, max(FEW - n, 0)
    low, high = value if low is None else low, value if high is None else high
    if low <= POOR and high >= GOOD:
        return Trust.CANNOT_TELL, _needed(value, (low, high), n) - n
    if value >= GOOD:
        return Trust.YES, 0
    return (Trust.NO, 0) if value < POOR else (Trust.CARE, 0)


def _needed(value: float, interval: Interval, n: int) -> int:
    """The ratings with which one end of the interval leaves the doubtful range; its width goes with 1 / sqrt(n)."""
    low, high = interval
    above = n * ((value - low) / (value - POOR)) ** 2 if value > POOR else math.inf
    below = n * ((high - value) / (GOOD - value)) ** 2 if value < GOOD else math.inf
    return max(math.floor(min(above, below)) + 1, n + 1)
