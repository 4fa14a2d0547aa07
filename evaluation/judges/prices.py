"""The operator's table of prices, and what calls cost by it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

from django.conf import settings

from evaluation.judging.calls import SHIPPED, JudgeReply, PriceTable, cost_of, read_prices
from evaluation.models import JudgeVersion


def price_table() -> PriceTable:
    """The file that ``CONCORD_PRICES`` names, read once per process; without one the shipped table, which is empty.

    :raises InvalidFile: for a file that is no table of prices.
    :raises OSError: for a file that cannot be read.
    """
    return _read(settings.CONCORD_PRICES)


@cache
def _read(path: str) -> PriceTable:
    return read_prices(Path(path) if path else SHIPPED)


def cost_of_all(judge: JudgeVersion, replies: Sequence[JudgeReply]) -> Decimal | None:
    """US dollars of some calls; ``None`` where that of one is unknown."""
    costs = [cost_of(judge.model, reply, table=price_table()) for reply in replies]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None
