"""Part of the examples for ``make test``: a fifth of those of hypothesis, and the first of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest


def max_examples(thorough: int) -> int:
    """Return ``thorough`` under the profile of that name, else a fifth of it and at least five."""
    return thorough if all_examples_enabled() else min(thorough, max(5, thorough // 5))


def all_examples_enabled() -> bool:
    """Return whether all examples are to be run."""
    return hypothesis.settings.get_current_profile_name() == "thorough"


def first_fast(values: Iterable[Any], count: int) -> list[Any]:
    """Return parameters of a test, all but the first ``count`` marked as slow."""
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=() if index < count else pytest.mark.slow) for index, row in enumerate(rows)]
