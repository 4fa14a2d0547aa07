"""Number formatting for pages. Numbers are rounded only here."""

from __future__ import annotations

from decimal import Decimal

from django.utils.translation import gettext, ngettext

from evaluation.core.scales import Scale, ScaleKind

MINUTE, HOUR = 60, 3600


def format_number(value: float, decimals: int = 2) -> str:
    """Number with a true minus sign, except before zero."""
    rounded = round(value, decimals) or 0.0
    return f"{rounded:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def format_signed(value: float, decimals: int = 2) -> str:
    """Difference with its sign; none if it rounds to zero."""
    text = format_number(value, decimals)
    return text if round(value, decimals) <= 0 else f"+{text}"


def on_scale(value: float | str | None, scale: Scale) -> str:
    """Value of a metric: whole levels without decimals, yes/no in words, seconds with unit."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if scale.kind is ScaleKind.YES_NO and float(value).is_integer():
        return gettext("yes") if value else gettext("no")
    if scale.kind is ScaleKind.SECONDS:
        return format_seconds(value)
    if scale.levels and float(value).is_integer():
        return format_number(value, 0)
    return format_number(value)


def scale_name(scale: Scale) -> str:
    """Scale after a metric's title: its range, classes or kind."""
    if scale.kind is ScaleKind.YES_NO:
        return gettext("yes or no")
    if scale.kind is ScaleKind.SECONDS:
        return gettext("seconds")
    return str(scale).partition(" ")[2]


def format_share(value: float) -> str:
    """Share from 0 to 1 as a percentage."""
    return f"{100 * value:.0f}%"


def format_interval(low: float | None, high: float | None, decimals: int = 2) -> str:
    """``0.68–0.76``; with words if the lower end is negative; empty if an end is missing."""
    if low is None or high is None:
        return ""
    ends = {"low": format_number(low, decimals), "high": format_number(high, decimals)}
    return gettext("%(low)s to %(high)s") % ends if low < 0 else f"{ends['low']}–{ends['high']}"


def format_seconds(value: float) -> str:
    return gettext("%(seconds)s s") % {"seconds": format_number(value, 1 if value < 10 else 0)}


def format_duration(value: float) -> str:
    """Approximate duration: seconds below 90 s, then minutes, then hours."""
    if value < 1.5 * MINUTE:
        return gettext("%(count)d s") % {"count": max(1, round(value))}
    if value < 1.5 * HOUR:
        return minutes(value)
    return ngettext("%(count)d h", "%(count)d h", round(value / HOUR)) % {"count": round(value / HOUR)}


def minutes(value: float) -> str:
    """Duration in whole minutes, at least one."""
    count = max(1, round(value / MINUTE))
    return ngettext("%(count)d min", "%(count)d min", count) % {"count": count}


def format_money(known_cost: Decimal, *, at_least: bool) -> str:
    """US dollars; with ``≥`` if the cost of some calls is unknown."""
    amount = f"${known_cost:.2f}" if known_cost >= Decimal("0.01") or known_cost == 0 else f"${known_cost:.4f}"
    return f"≥ {amount}" if at_least else amount
