"""The filters of a run's answers, read from a query string or form with a closed list of names."""

from __future__ import annotations

import math

from django.http import QueryDict

from review.evidence.effective import Source
from review.results.selection import Wanted

NAMES = ("metric", "low", "high", "label", "source", "category", "q")


def wanted_from(data: QueryDict) -> Wanted:
    """What is asked for; a value that is none is passed over."""
    source = data.get("source", "")
    return Wanted(
        metric=data.get("metric", "")[:100],
        low=_number(data.get("low", "")),
        high=_number(data.get("high", "")),
        label=data.get("label", "")[:200],
        source=source if source in set(Source) else "",
        category=data.get("category", "")[:200],
        words=data.get("q", "").strip()[:200],
    )


def query_of(data: QueryDict, **more: str) -> str:
    """The filters as a query string again."""
    kept = QueryDict(mutable=True)
    kept.update({name: text for name in NAMES if (text := data.get(name, ""))})
    kept.update({name: value for name, value in more.items() if value})
    return f"?{kept.urlencode()}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
