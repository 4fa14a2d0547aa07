"""The operator's table of prices."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.conf import settings

from evaluation.judging.pricing import SHIPPED, PriceTable, read_prices


def price_table() -> PriceTable:
    """The file that ``CONCORD_PRICES`` names, read once per process; without one the shipped table, which is empty.

    :raises InvalidFile: for a file that is no table of prices.
    :raises OSError: for a file that cannot be read.
    """
    return _read(settings.CONCORD_PRICES)


@cache
def _read(path: str) -> PriceTable:
    return read_prices(Path(path) if path else SHIPPED)
