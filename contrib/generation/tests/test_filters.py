"""Filters of written questions, each with a planted bad question and a good one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrib.generation.filters import (
    Filter,
    filter_by_passages,
    filter_known,
    filter_without_calls,
    find_leak,
    read_question,
    trigram_similarity,
)
from contrib.generation.kinds import KINDS, QuestionKind
from contrib.generation.prompts import AnsweringPassages
from evaluation.core.samples import QuestionSpec

PASSAGE = "The library lends ten books for fourteen days to undergraduates, and thirty books for ninety days to staff."
KOREAN = "학부생은 도서관에서 책을 10책까지 14일 동안 빌릴 수 있으며, 교직원은 30책까지 90일 동안 빌릴 수 있다."
SINGLE, PAIR, NEGATIVE = KINDS["single_hop"], KINDS["multi_hop_2"], KINDS["negative"]


def question(
    text: str, answer: str = "Ten books.", keywords: tuple[str, ...] = ("ten",), kind: QuestionKind = SINGLE
) -> QuestionSpec:
    raw_question = {"question": text, "answer": answer, "keywords": list(keywords), "required_info": ["ten books"]}
    return read_question(raw_question, kind, ["a"])


GOOD = question("How many volumes may a student borrow at once?")


def test_a_question_is_read_with_its_kind_passages_and_mark() -> None:
    assert (GOOD.category, GOOD.hops, GOOD.difficulty) == ("single_hop", 1, "easy")
    assert (GOOD.ground_truth_chunk_ids, GOOD.keywords, GOOD.tags) == (("a",), (("ten",),), ("synthetic",))
    negative = question("Who was the first librarian?", "The documents do not tell.", kind=NEGATIVE)
    assert negative.ground_truth_chunk_ids == ()
    assert negative.keywords == ()
    assert negative.category == "negative"


@pytest.mark.parametrize(
    ("text", "leaked_words"),
    [
        ("According to the passage, how many books may a student borrow?", "the passage"),
        ("What does this text say of lending?", "this text"),
        ("위 글에 따르면 학부생은 몇 책까지 빌릴 수 있나요?", "위 글"),
        ("Is it true that students may borrow ten books?", "ten"),
        ("The library lends ten books for fourteen days to whom?", "thelibrarylends"),
    ],
)
def test_question_that_reveals_its_answer_is_removed(text: str, leaked_words: str) -> None:
    keywords = ("undergraduates",) if text.startswith("The library") else ("ten",)
    removal = filter_without_calls(spec := question(text, keywords=keywords), [PASSAGE], [], None)
    assert removal
    assert removal.reason == Filter.LEAKED
    assert find_leak(spec, [PASSAGE]).casefold().startswith(leaked_words.casefold()[:8])


def test_korean_question_in_other_words_is_kept() -> None:
    spec = question("도서관에서 대학생 한 명이 한 번에 대출할 수 있는 책은 모두 몇 권인가요?", "10책입니다.", ("10책",))
    assert filter_without_calls(spec, [KOREAN], [question("교직원은 며칠 동안 빌리나요?")], (3.0, 1.5)) is None


def test_question_without_question_or_answer_is_removed() -> None:
    for spec in (question(""), question("Tell me of books."), question("Why?", answer=" "), question("a?" * 400)):
        removal = filter_without_calls(spec, [PASSAGE], [], None)
        assert removal
        assert removal.reason == Filter.NO_QUESTION


def test_duplicate_question_is_removed() -> None:
    removal = filter_without_calls(GOOD, [PASSAGE], [question("How many volumes may students borrow at once?")], None)
    assert removal
    assert (removal.reason, removal.detail["of"]) == (
        Filter.DUPLICATE,
        "How many volumes may students borrow at once?",
    )
    assert filter_without_calls(GOOD, [PASSAGE], [question("For how long may staff keep a book?")], None) is None
    other_spec = GOOD.model_copy(update={"group": "b", "references": ("Thirty.",)})
    assert filter_without_calls(GOOD, [PASSAGE], [other_spec], None) is None


@pytest.mark.parametrize(
    ("scores", "is_removed"),
    [((6.0, 2.0), True), ((5.9, 2.0), False), ((0.0, 0.0), False), ((2.0, 0.0), True), (None, False)],
)
def test_question_found_by_its_words_alone_is_removed(scores: tuple[float, float] | None, is_removed: bool) -> None:
    removal = filter_without_calls(GOOD, [PASSAGE], [], scores)
    assert (removal is not None and removal.reason == Filter.TRIVIAL) == is_removed


# Own passages are at places 1 (and 2); what the model said of five.
@pytest.mark.parametrize(
    ("kind", "own", "answerable", "needed", "alone", "expected_filter"),
    [
        (SINGLE, {1}, True, {1}, {1}, None),
        (SINGLE, {1}, True, {1}, {1, 3}, Filter.ELSEWHERE),
        (SINGLE, {1}, True, {3}, {3}, Filter.ELSEWHERE),
        (SINGLE, {1}, False, set(), set(), Filter.NOT_ANSWERABLE),
        (SINGLE, {1}, True, {1, 2}, set(), Filter.NOT_ANSWERABLE),
        (PAIR, {1, 2}, True, {1, 2}, set(), None),
        (PAIR, {1, 2}, True, {1}, {1}, Filter.ELSEWHERE),
        (PAIR, {1, 2}, True, {1, 2}, {2}, Filter.ELSEWHERE),
        (PAIR, {1, 2}, True, {1, 4}, set(), Filter.NOT_ANSWERABLE),
        (PAIR, {1, 2}, False, set(), set(), Filter.NOT_ANSWERABLE),
        (NEGATIVE, {1}, False, set(), set(), None),
        (NEGATIVE, {1}, True, {3}, {3}, Filter.ELSEWHERE),
    ],
)
def test_answering_passages_decide(
    kind: QuestionKind, own: set[int], answerable: bool, needed: set[int], alone: set[int], expected_filter: str | None
) -> None:
    removal = filter_by_passages(GOOD, kind, AnsweringPassages(answerable, frozenset(needed), frozenset(alone)), own)
    assert (removal.reason if removal else None) == expected_filter


def test_question_known_by_heart_is_removed() -> None:
    spec = question("How many books, and for how long?", keywords=("ten", "fourteen days"))
    assert filter_known(spec, True, "Ten books for fourteen days") is not None
    assert filter_known(spec, True, "Ten books for a month") is None
    assert filter_known(spec, False, "Ten books for fourteen days") is None
    assert filter_known(question("Which?", keywords=()), True, "anything") is None


@given(st.text(), st.text())
def test_trigram_similarity_is_a_symmetric_share(left: str, right: str) -> None:
    assert 0 <= trigram_similarity(left, right) == trigram_similarity(right, left) <= 1
    assert trigram_similarity(left, left) == 1
