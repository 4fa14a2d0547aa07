"""Numbers as pages write them. Where there is no number the text is empty, and the template says what stands there."""

from collections.abc import Mapping
from typing import Protocol

from django import template

from evaluation.messages import numbers
from review.agreement.plots import STATISTICS
from review.reports.figure import why_withheld
from review.reports.figure_cards import cell
from review.reports.licence_words import licence_reason, licence_state
from review.statistics.agreement.pair import PairAgreement
from review.statistics.agreement.trust import Trust

register = template.Library()
for _one in (
    *(numbers.on_scale, numbers.scale_name, numbers.minutes, why_withheld, cell),
    *(licence_state, licence_reason),
):
    register.filter(_one)


class Ends(Protocol):
    """Anything with the ends of an interval."""

    @property
    def low(self) -> float | None:
        """The lower end."""

    @property
    def high(self) -> float | None:
        """The upper end."""


@register.filter
def plain(value: float | None, decimals: int = 2) -> str:
    """A number with so many decimals."""
    return "" if value is None else numbers.plain(value, decimals)


@register.filter
def signed(value: float | None, decimals: int = 2) -> str:
    """A difference with its sign."""
    return "" if value is None else numbers.signed(value, decimals)


@register.filter
def share(value: float | None) -> str:
    """A share from 0 to 1 as a percentage."""
    return "" if value is None else numbers.share(value)


@register.filter
def interval(figure: Ends | None, decimals: int = 2) -> str:
    """The interval of whatever has ends ``low`` and ``high``."""
    return "" if figure is None else numbers.interval(figure.low, figure.high, decimals)


@register.filter
def share_interval(figure: Ends) -> str:
    """The interval of a share as percentages; empty without both ends."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{100 * figure.low:.0f}–{numbers.share(figure.high)}"


@register.filter
def at(counts: Mapping[str, int], key: str) -> int:
    """The count under a key that stands in a variable."""
    return counts[key]


@register.filter
def about(seconds: float | None) -> str:
    """A duration as a person would say it."""
    return "" if seconds is None else numbers.about(seconds)


@register.filter
def p_value(p: float | None) -> str:
    """``p = 0.042``, and no more digits than are meant."""
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


@register.filter
def lost(count: int) -> str:
    """A count of what was lost, with its minus."""
    return numbers.plain(-count, 0)


@register.filter
def statistic(found: PairAgreement | None, name: str) -> float | None:
    """An agreement statistic by its name, ``None`` where nothing was compared or it is not defined."""
    return found.statistics[name].value if found else None


@register.filter
def statistic_title(name: str) -> str:
    """What an agreement statistic is called."""
    return str(STATISTICS[name][0])


@register.filter
def statistic_meaning(name: str) -> str:
    """What an agreement statistic says, in one line."""
    return str(STATISTICS[name][1])


LOOKS = {Trust.NO: "bad", Trust.YES: "ok", Trust.CARE: "warn", Trust.EXPERTS_DISAGREE: "warn"}


@register.filter
def trust_look(trust: Trust) -> str:
    """The class of the style sheet of a verdict's chip, which says it in words too."""
    return LOOKS.get(trust, "")
