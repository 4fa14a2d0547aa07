"""The operator's price table, and the cost of calls."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

from django.conf import settings

from evaluation.judging.calls import SHIPPED_PRICES, JudgeReply, PriceTable, call_cost, read_prices
from evaluation.models import JudgeVersion


def price_table() -> PriceTable:
    """Price table in the file of ``CONCORD_PRICES``, read once per process; without the setting the shipped table
    (empty).

    :raises InvalidFile: for a file that is not a price table.
    :raises OSError: for an unreadable file."""
    return _load_table(settings.CONCORD_PRICES)


@cache
def _load_table(path: str) -> PriceTable:
    return read_prices(Path(path) if path else SHIPPED_PRICES)


def total_cost(judge: JudgeVersion, replies: Sequence[JudgeReply]) -> Decimal | None:
    """US dollars of several calls; ``None`` if the cost of one is unknown."""
    costs = [call_cost(judge.model, reply, table=price_table()) for reply in replies]
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs, Decimal(0)) if len(known_costs) == len(costs) else None
