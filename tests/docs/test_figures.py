"""Figures in the documentation are fresh. ``python -m tests.docs.figures`` writes them."""

from __future__ import annotations

import re

import pytest

from tests.docs.computed import PAGES
from tests.docs.figures import DOCS, KOREAN, Computed, refresh_page, refresh_text

EXAMPLE = """Of <!-- value: n -->1,000 answers <!-- value: share -->0% pass: <!-- value: verdict -->unknown.

<!-- figures: means -->
| figure | value | meaning |
|---|---|---|
| `mean` | 0.000 | The mean. |

<!-- table: rows -->
| a | b |
|---|---|
| 1 | 2 |
"""
COMPUTED: Computed = {
    "n": 2500, "share": 0.126, "verdict": "cannot_tell", "means": {"mean": -2 / 3}, "rows": ["| 3 | 4 |", "| 5 | 6 |"]
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_page_is_up_to_date(page: str) -> None:
    assert refresh_page(page, PAGES[page]) == (DOCS / page).read_text(encoding="utf-8"), "python -m tests.docs.figures"


@pytest.mark.parametrize("page", PAGES)
def test_page_shows_every_computed_figure_in_each_language(page: str) -> None:
    for text in (DOCS / page).read_text(encoding="utf-8").split(KOREAN):
        assert set(re.findall(r"<!-- (?:value|figures|table): (\w+) -->", text)) == set(PAGES[page](text))


def test_figures_keep_the_decimals_of_the_page() -> None:
    text = refresh_text(EXAMPLE, COMPUTED)
    assert text.startswith("Of <!-- value: n -->2,500 answers <!-- value: share -->13% pass:")
    assert "<!-- value: verdict -->cannot_tell.\n" in text
    assert "| `mean` | -0.667 | The mean. |\n" in text
    assert text.endswith("|---|---|\n| 3 | 4 |\n| 5 | 6 |\n")
    assert refresh_text(text, COMPUTED) == text


@pytest.mark.parametrize("name", ["n", "means", "rows"])
def test_marker_without_computed_value_raises_error(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        refresh_text(EXAMPLE, {key: value for key, value in COMPUTED.items() if key != name})
