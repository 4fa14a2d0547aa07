"""Numbers and tables of ``docs/generation.md`` are those of the code."""

from __future__ import annotations

from pathlib import Path

from evaluation.scoring import side_calls
from review.generation import filters, working
from review.generation.kinds import KINDS
from review.models import DraftQuestion
from review.statistics.agreement.bootstrap import clopper_pearson

PAGE = Path("docs/generation.md").read_text(encoding="utf-8")


def _column(title: str) -> list[list[str]]:
    """The cells of the table whose first column has this title."""
    block = PAGE.split(f"| {title} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]


def test_the_kinds_are_told_with_their_passages() -> None:
    assert [(row[0], int(row[1])) for row in _column("kind")] == [(one.name, one.passages) for one in KINDS.values()]


def test_every_filter_is_told() -> None:
    assert sorted(row[0] for row in _column("filter")) == sorted(DraftQuestion.Filter.values)


def test_the_bounds_of_filters_are_told_as_they_are() -> None:
    said = {row[0]: row[1] for row in _column("filter")}
    assert f"{filters.COPIED_CHARACTERS} characters of the passage" in said["leaked"]
    assert filters.ALIKE == 0.7
    assert "seven tenths" in said["duplicate"]
    assert filters.TRIVIAL_RATIO == 3
    assert "three times the BM25 score" in said["trivial"]
    assert working.OTHERS == 4
    assert "four most alike others" in said["not_answerable"]
    assert side_calls.MOST_CALLS == 3
    assert "three tries" in said["unchecked"]


def test_the_rate_of_acceptance_and_its_interval() -> None:
    low, high = clopper_pearson(9 / 11, 11)
    assert f"of 11 decided questions 9\naccepted are {9 / 11:.2f} ({low:.2f} to {high:.2f})" in PAGE
