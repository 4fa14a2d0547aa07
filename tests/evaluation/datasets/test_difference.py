"""Differences between two versions of a question set."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.canonical import content_hash
from evaluation.core.samples import CheckPhrases, Nugget, QuestionSpec, questions_hash
from evaluation.datasets.importing import FieldChange, compare_questions, differing_keys


def spec(id_: str = "q1", **fields: Any) -> QuestionSpec:
    return QuestionSpec(**({"id": id_, "category": "c", "text": "What?"} | fields))


def test_added_removed_and_changed_questions_are_listed() -> None:
    old = [spec("a"), spec("b", difficulty="easy"), spec("c")]
    new = [spec("b", difficulty="hard", tags=("x",)), spec("d"), spec("a")]
    difference = compare_questions(old, new)
    assert (difference.added, difference.removed) == (("d",), ("c",))
    assert [change.id for change in difference.changed] == ["b"]
    assert difference.changed[0].fields == (FieldChange("difficulty", "easy", "hard"), FieldChange("tags", [], ["x"]))


def test_question_order_makes_no_difference() -> None:
    old, new = [spec("a"), spec("b")], [spec("b"), spec("a")]
    assert not compare_questions(old, new)
    assert questions_hash(old) == questions_hash(new)


def test_unicode_composition_makes_no_difference() -> None:
    composed, decomposed = "학칙", unicodedata.normalize("NFD", "학칙")
    old, new = [spec(composed, text=composed)], [spec(decomposed, text=decomposed)]
    assert old != new
    assert not compare_questions(old, new)
    assert questions_hash(old) == questions_hash(new)


def test_hash_covers_questions_sorted_by_id_without_defaults() -> None:
    questions = [spec("나", hops=2), spec("가", keywords=(("서울", "Seoul"),)), spec("\U00010400"), spec("\uffee")]
    rows = [
        question.model_dump(mode="json", exclude_defaults=True)
        for question in sorted(questions, key=lambda question: question.id)
    ]
    assert questions_hash(questions) == content_hash(rows)
    assert questions_hash([]) == content_hash([])


@pytest.mark.parametrize(
    "changed",
    [
        {"category": "d"},
        {"text": "Who?"},
        {"difficulty": "hard"},
        {"references": ("x",)},
        {"keywords": (("x", "y"),)},
        {"check": "should_not_hallucinate"},
        {"check_phrases": CheckPhrases(any_of=("x",))},
        {"hops": 2},
        {"aggregation_type": "sum"},
        {"inference_type": "x"},
        {"required_info": ("x",)},
        {"nuggets": (Nugget(name="x"),)},
        {"ground_truth_chunk_ids": ("x",)},
        {"persona": "x"},
        {"history": ("x",)},
        {"clarification_ok": True},
        {"group": "x"},
        {"tags": ("x",)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_field_changes_the_hash_and_the_difference(changed: dict[str, Any]) -> None:
    (field,) = changed
    old, new = [spec()], [spec(**changed)]
    assert questions_hash(old) != questions_hash(new)
    assert [f.field for f in compare_questions(old, new).changed[0].fields] == [field]


def test_a_key_differs_when_its_value_differs_or_one_side_lacks_it() -> None:
    old = {"a": {"source": "x", "page": 1, "same": [1, 2]}, "b": {"note": None}}
    new = {"a": {"source": "y", "same": [1, 2]}, "b": {}}
    assert differing_keys(old, new) == ("note", "page", "source")
    assert differing_keys(old, old) == ()


IDS = st.lists(st.sampled_from("abcdef"), unique=True)


@given(IDS, IDS, st.sampled_from(["", "easy"]))
def test_a_difference_accounts_for_every_question(old: list[str], new: list[str], difficulty: str) -> None:
    difference = compare_questions([spec(i) for i in old], [spec(i, difficulty=difficulty) for i in new])
    common = set(old) & set(new)
    assert set(difference.added) == set(new) - set(old)
    assert set(difference.removed) == set(old) - set(new)
    assert {change.id for change in difference.changed} == (common if difficulty else set())
