"""The ten practice examples: complete in both languages, on every level, and based on the demo."""

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
    """Yield every text of an item that a person reads."""
    yield from (item.question, item.answer, item.expected, *([item.advice] if item.advice else []))
    for passage in item.passages:
        yield from (passage.source, passage.text)
    yield from (rating.why for rating in item.ratings.values())


def test_ten_examples_have_unique_ids() -> None:
    assert len({item.id for item in practice_items()}) == len(practice_items()) == 10


def test_every_example_asks_the_criteria_of_the_demo() -> None:
    assert METRICS == DEMO_METRICS
    assert set(METRICS) <= set(shipped_rubric(FAMILY, "ko").names)
    assert all(set(item.ratings) == set(METRICS) for item in practice_items())


@pytest.mark.parametrize("metric", METRICS)
def test_every_level_of_a_criterion_occurs(metric: str) -> None:
    levels = {int(level.value) for level in shipped_rubric(FAMILY, "en").metric(metric).levels}
    assert {item.ratings[metric].level for item in practice_items()} == levels == {1, 2, 3, 4, 5}  # type: ignore[index]


def test_every_example_is_complete_in_both_languages() -> None:
    incomplete = [
        (item.id, language, translation)
        for item in practice_items()
        for translation in texts(item)
        for language, text in (("en", translation.en), ("ko", translation.ko))
        if not text.strip() or language_of(text) != language
    ]
    assert incomplete == []


def test_feedback_lists_the_largest_difference_first() -> None:
    phone = next(item for item in practice_items() if item.id == "phone")  # expected: 5, 1, 5
    feedback = practice_feedback(phone, {"correctness": 4, "faithfulness": 5, "completeness": 5})
    assert [(comparison.metric, comparison.distance) for comparison in feedback] == [
        ("faithfulness", 4), ("correctness", 1), ("completeness", 0),
    ]  # fmt: skip


def test_unjudged_criterion_is_listed_first_and_never_equal() -> None:
    loan = practice_items()[0]
    feedback = practice_feedback(loan, {"correctness": 5, "faithfulness": 5, "completeness": None})
    assert (feedback[0].metric, feedback[0].distance, feedback[0].is_same) == ("completeness", None, False)


def test_tally_counts_the_judged_criteria() -> None:
    # Faithfulness of the first three examples is 5, 1, 2. Given 5 (same), 2 (one higher), 5 (three higher).
    # Completeness is 5, 5, 5: given 4 (one lower), not judged, 5 (same).
    ratings: dict[str, dict[str, int | None]] = {
        "loan": {"correctness": 5, "faithfulness": 5, "completeness": 4},
        "phone": {"correctness": 5, "faithfulness": 2, "completeness": None},
        "summer-fee": {"correctness": 2, "faithfulness": 5, "completeness": 5},
    }
    correctness, faithfulness, completeness = tally_ratings(practice_items(), ratings)
    assert correctness == Tally("correctness", total=3, same=3, within_one=3, higher=0, lower=0)
    assert faithfulness == Tally("faithfulness", total=3, same=1, within_one=2, higher=2, lower=0)
    assert completeness == Tally("completeness", total=2, same=1, within_one=2, higher=0, lower=1)


def test_the_categories_of_the_examples_have_names() -> None:
    assert {item.category for item in practice_items()} <= set(CATEGORY_NAMES)
