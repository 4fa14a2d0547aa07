"""What calls cost and what the ledger's replies saved, in words."""

from __future__ import annotations

from django.utils.translation import gettext, ngettext

from evaluation.runs.costs import EMBEDDINGS, PREFLIGHT, Spending
from evaluation.wording import numbers


def part_title(name: str) -> str:
    """What a part of a run's cost was paid for: a rubric by its name, or what is no rubric in words."""
    return {EMBEDDINGS: gettext("embeddings"), PREFLIGHT: gettext("preflight")}.get(name, name)


def cost_of_calls(spent: Spending) -> str:
    """How many calls were made and what they cost."""
    said = ngettext("%(count)d call", "%(count)d calls", spent.calls) % {"count": spent.calls}
    return f"{said} · {numbers.money(spent.known, at_least=spent.at_least)}"


def saving(spent: Spending) -> str:
    """How many calls the ledger answered, and what those had cost where anybody knows."""
    hits = {"count": spent.hits}
    said = ngettext("%(count)d call answered from the cache", "%(count)d calls answered from the cache", spent.hits)
    if spent.unpriced_hits == spent.hits:
        return said % hits + gettext(" (saved: unknown)")
    return said % hits + gettext(" (saved: %(money)s)") % {
        "money": numbers.money(spent.saved, at_least=spent.saved_at_least)
    }
