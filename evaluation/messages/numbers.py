"""Numbers as pages write them: rounded where they are shown and nowhere else."""

from __future__ import annotations

from decimal import Decimal

from django.utils.translation import gettext, ngettext

from evaluation.core.scales import Scale, ScaleKind

MINUTE, HOUR = 60, 3600


def plain(value: float, decimals: int = 2) -> str:
    """A number with a true minus sign, and none before a zero."""
    rounded = round(value, decimals) or 0.0
    return f"{rounded:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def signed(value: float, decimals: int = 2) -> str:
    """A difference with its sign; a difference that rounds to nothing has none."""
    text = plain(value, decimals)
    return text if round(value, decimals) <= 0 else f"+{text}"


def on_scale(value: float | str | None, scale: Scale) -> str:
    """A value of a metric: whole levels without decimals, yes and no in words, seconds with their unit."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if scale.kind is ScaleKind.YES_NO and float(value).is_integer():
        return gettext("yes") if value else gettext("no")
    if scale.kind is ScaleKind.SECONDS:
        return seconds(value)
    if scale.levels and float(value).is_integer():
        return plain(value, 0)
    return plain(value)


def scale_name(scale: Scale) -> str:
    """The scale behind a metric's title: its range, its classes or what its values are."""
    if scale.kind is ScaleKind.YES_NO:
        return gettext("yes or no")
    if scale.kind is ScaleKind.SECONDS:
        return gettext("seconds")
    return str(scale).partition(" ")[2]


def share(value: float) -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{100 * value:.0f}%"


def interval(low: float | None, high: float | None, decimals: int = 2) -> str:
    """``0.68–0.76``, in words where a minus would meet the dash; empty without both ends."""
    if low is None or high is None:
        return ""
    ends = {"low": plain(low, decimals), "high": plain(high, decimals)}
    return gettext("%(low)s to %(high)s") % ends if low < 0 else f"{ends['low']}–{ends['high']}"


def seconds(value: float) -> str:
    """Seconds with their unit."""
    return gettext("%(seconds)s s") % {"seconds": plain(value, 1 if value < 10 else 0)}


def about(value: float) -> str:
    """A duration as a person would say it: seconds below a minute and a half, then minutes, then hours."""
    if value < 1.5 * MINUTE:
        return gettext("%(count)d s") % {"count": max(1, round(value))}
    if value < 1.5 * HOUR:
        return minutes(value)
    return ngettext("%(count)d h", "%(count)d h", round(value / HOUR)) % {"count": round(value / HOUR)}


def minutes(value: float) -> str:
    """A duration in whole minutes, at least one."""
    count = max(1, round(value / MINUTE))
    return ngettext("%(count)d min", "%(count)d min", count) % {"count": count}


def money(known: Decimal, *, at_least: bool) -> str:
    """US dollars; with ``≥`` where the cost of some calls is unknown."""
    amount = f"${known:.2f}" if known >= Decimal("0.01") or known == 0 else f"${known:.4f}"
    return f"≥ {amount}" if at_least else amount
