"""The form of a practice example: a level of the rubric for each criterion."""

from __future__ import annotations

from django.http import QueryDict

from review.extras.practice.items import METRICS
from review.web.forms.rating import CANNOT_JUDGE

LEVELS = {str(level): level for level in range(1, 6)}


def read_levels(data: QueryDict) -> dict[str, int | None]:
    """The level of each criterion that was answered, ``None`` for one that cannot be judged; what is no level is left
    out."""
    found: dict[str, int | None] = {}
    for name in METRICS:
        text = data.get(f"value:{name}", "")
        if text == CANNOT_JUDGE:
            found[name] = None
        elif text in LEVELS:
            found[name] = LEVELS[text]
    return found
