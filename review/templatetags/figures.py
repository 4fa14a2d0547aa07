"""Number filters. A missing number becomes an empty text, which the template replaces."""

from collections.abc import Mapping
from typing import Protocol

from django import template

from evaluation.messages import numbers
from review.agreement import run_agreement
from review.agreement.plots import STATISTICS
from review.calibration import pages as calibration
from review.reports.approval_words import approval_reason, approval_state
from review.reports.figure import withheld_reason
from review.reports.figure_cards import cell
from review.statistics.agreement.pair import PairAgreement
from review.statistics.agreement.trust import Trust
from review.statistics.paired_tests import family, paired

register = template.Library()
for _filter in (
    *(numbers.on_scale, numbers.scale_name, numbers.minutes, withheld_reason, cell),
    *(approval_state, approval_reason),
):
    register.filter(_filter)


class Interval(Protocol):
    """An object with the ends of an interval."""

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


@register.filter
def plain(value: float | None, decimals: int = 2) -> str:
    return "" if value is None else numbers.format_number(value, decimals)


@register.filter
def signed(value: float | None, decimals: int = 2) -> str:
    return "" if value is None else numbers.format_signed(value, decimals)


@register.filter
def share(value: float | None) -> str:
    """Format a share from 0 to 1 as a percentage."""
    return "" if value is None else numbers.format_share(value)


@register.filter
def interval(figure: Interval | None, decimals: int = 2) -> str:
    return "" if figure is None else numbers.format_interval(figure.low, figure.high, decimals)


@register.filter
def share_interval(figure: Interval) -> str:
    """Format the interval of a share as percentages. Empty without both ends."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{100 * figure.low:.0f}–{numbers.format_share(figure.high)}"


@register.filter
def lookup(counts: Mapping[str, int], key: str) -> int:
    """Look up a count by a variable key."""
    return counts[key]


@register.filter
def duration(seconds: float | None) -> str:
    return "" if seconds is None else numbers.format_duration(seconds)


@register.filter
def p_value(p: float | None) -> str:
    """Format as ``p = 0.042``, or ``p < 0.001``."""
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


@register.filter
def lost(count: int) -> str:
    return numbers.format_number(-count, 0)


@register.filter
def statistic(agreement: PairAgreement | None, name: str) -> float | None:
    """Agreement statistic by name. ``None`` without a comparison or if undefined."""
    return agreement.statistics[name].value if agreement else None


@register.filter
def statistic_title(name: str) -> str:
    return str(STATISTICS[name][0])


@register.filter
def statistic_meaning(name: str) -> str:
    return str(STATISTICS[name][1])


CHIP_CLASSES = {Trust.NO: "bad", Trust.YES: "ok", Trust.CARE: "warn", Trust.EXPERTS_DISAGREE: "warn"}


@register.filter
def trust_class(trust: Trust) -> str:
    """CSS class of a verdict's chip."""
    return CHIP_CLASSES.get(trust, "")


@register.inclusion_tag("review/reports/_interval_definitions.html")
def interval_definitions() -> dict[str, int]:
    """Define every kind of interval, with the numbers of resamples in use."""
    return {
        "agreement_resamples": run_agreement.RESAMPLES,
        "validation_resamples": calibration.RESAMPLES,
        "permutations": paired.PERMUTATIONS,
        "family_resamples": family.RESAMPLES,
        "rank_resamples": family.PAIR_RESAMPLES,
    }
