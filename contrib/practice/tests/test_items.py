"""The practice examples: ten, complete in both languages, on every level, and at home in the demo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contrib.practice.items import (
    FAMILY,
    METRICS,
    PracticeItem,
    Tally,
    practice_feedback,
    practice_items,
    tally_ratings,
)
from evaluation.core.metric_specs import Bilingual
from evaluation.judging.rubric import shipped_rubric
from evaluation.messages.explanations import CATEGORY_NAMES
from evaluation.messages.markdown import language_of
from review.management.demo.loader import METRICS as DEMO_METRICS


def texts(item: PracticeItem) -> Iterator[Bilingual]:
    """Everything of an item that a person reads."""
    yield from (item.question, item.answer, item.expected, *([item.advice] if item.advice else []))
    for passage in item.passages:
        yield from (passage.source, passage.text)
    yield from (rating.why for rating in item.ratings.values())


def test_there_are_ten_examples_with_names_of_their_own() -> None:
    assert len({item.id for item in practice_items()}) == len(practice_items()) == 10


def test_every_example_asks_for_the_criteria_of_the_demo() -> None:
    assert METRICS == DEMO_METRICS
    assert set(METRICS) <= set(shipped_rubric(FAMILY, "ko").names)
    assert all(set(item.ratings) == set(METRICS) for item in practice_items())


@pytest.mark.parametrize("metric", METRICS)
def test_every_level_of_a_criterion_is_the_right_one_somewhere(metric: str) -> None:
    levels = {int(level.value) for level in shipped_rubric(FAMILY, "en").metric(metric).levels}
    assert {item.ratings[metric].level for item in practice_items()} == levels == {1, 2, 3, 4, 5}  # type: ignore[index]


def test_every_example_is_complete_in_both_languages() -> None:
    wrong = [
        (item.id, language, one)
        for item in practice_items()
        for one in texts(item)
        for language, text in (("en", one.en), ("ko", one.ko))
        if not text.strip() or language_of(text) != language
    ]
    assert wrong == []


def test_what_differs_comes_first_and_the_furthest_at_the_top() -> None:
    phone = next(item for item in practice_items() if item.id == "phone")  # expected: 5, 1, 5
    found = practice_feedback(phone, {"correctness": 4, "faithfulness": 5, "completeness": 5})
    assert [(one.metric, one.distance) for one in found] == [
        ("faithfulness", 4), ("correctness", 1), ("completeness", 0),
    ]  # fmt: skip


def test_a_criterion_that_was_not_judged_is_told_first_and_never_the_same() -> None:
    loan = practice_items()[0]
    found = practice_feedback(loan, {"correctness": 5, "faithfulness": 5, "completeness": None})
    assert (found[0].metric, found[0].distance, found[0].is_same) == ("completeness", None, False)


def test_the_tally_counts_what_was_judged() -> None:
    # Faithfulness of the first three examples is 5, 1, 2. Given 5 (same), 2 (one higher), 5 (three higher).
    # Completeness is 5, 5, 5: given 4 (one lower), not judged, 5 (same).
    given: dict[str, dict[str, int | None]] = {
        "loan": {"correctness": 5, "faithfulness": 5, "completeness": 4},
        "phone": {"correctness": 5, "faithfulness": 2, "completeness": None},
        "summer-fee": {"correctness": 2, "faithfulness": 5, "completeness": 5},
    }
    correctness, faithfulness, completeness = tally_ratings(practice_items(), given)
    assert correctness == Tally("correctness", given=3, same=3, within_one=3, higher=0, lower=0)
    assert faithfulness == Tally("faithfulness", given=3, same=1, within_one=2, higher=2, lower=0)
    assert completeness == Tally("completeness", given=2, same=1, within_one=2, higher=0, lower=1)


def test_the_categories_of_the_examples_have_names() -> None:
    assert {item.category for item in practice_items()} <= set(CATEGORY_NAMES)
