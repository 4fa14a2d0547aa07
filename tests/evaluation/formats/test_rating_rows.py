"""Rating files: scales, stored failures, refused values, parts and pairs."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from evaluation.core.errors import DomainError
from evaluation.core.samples import Finding
from evaluation.core.scales import Scale
from evaluation.formats.rating_rows import Origin, PairSide, Phase, Rater, RatingRow, read_definitions
from evaluation.formats.reading import read_ratings
from tests.evaluation.formats.support import expect_problems, facts, jsonl

SCALES = {
    "correctness": Scale.parse("levels 1..5"),
    "support": Scale.parse("real 0..1"),
    "acceptable": Scale.parse("yes_no"),
    "label": Scale.parse("class CORRECT|WRONG|DONT_KNOW"),
}


def row(**fields: Any) -> dict[str, Any]:
    return {"question_id": "q", "metric": "correctness", "value": 4, "rater": "human", "author": "kim", **fields}


def read_rating(**fields: Any) -> RatingRow:
    (rating,) = read_ratings(jsonl(row(**fields)), "a.jsonl", scales=SCALES).ratings
    return rating


def expect_row_problems(*rows: Any) -> list[tuple[str, int | None, str]]:
    return facts(expect_problems(read_ratings, jsonl(*rows), "a.jsonl", scales=SCALES))


def test_a_full_row_is_read() -> None:
    rating = read_rating(
        sample=1, reason="fine", phase="final", blind=False, probability=0.25, created="2026-01-31T09:30:00Z", note="n"
    )
    assert rating == RatingRow(
        question_id="q",
        sample=1,
        metric="correctness",
        value=4.0,
        label=None,
        failure="",
        reason="fine",
        parts=(),
        origin=Origin(Rater.HUMAN, "kim", Phase.FINAL, False, 0.25, datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        metadata={"note": "n"},
        line=1,
    )


def test_phase_and_blindness_have_defaults_and_source_means_rater() -> None:
    rating = read_rating(rater=None, source="Judge", author="gpt-4@1")
    assert rating.origin == Origin(Rater.JUDGE, "gpt-4@1", Phase.INITIAL, True, None, None)
    assert read_rating(source="survey").metadata == {"source": "survey"}
    assert read_rating(phase="initial").origin.phase is Phase.INITIAL


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("correctness", 1, 1.0),
        ("correctness", 5.0, 5.0),
        ("correctness", "3", 3.0),
        ("correctness", 4.5, None),
        ("correctness", 0, None),
        ("correctness", True, None),
        ("correctness", "good", None),
        ("correctness", [4], None),
        ("support", 0.5, 0.5),
        ("support", 1.01, None),
        ("acceptable", True, 1.0),
        ("acceptable", False, 0.0),
        ("acceptable", 0, 0.0),
        ("acceptable", 1.0, 1.0),
        ("acceptable", "true", 1.0),
        ("acceptable", 2, None),
        ("acceptable", 0.5, None),
        ("label", "WRONG", "WRONG"),
        ("label", "dont_know", "DONT_KNOW"),
        ("label", "MAYBE", None),
        ("label", 1, None),
    ],
)
def test_off_scale_judge_value_is_stored_as_failed_and_human_is_refused(
    metric: str, value: Any, expected: float | str | None
) -> None:
    judge_rating = read_rating(metric=metric, value=value, rater="judge", author="j@1")
    if expected is None:
        assert (judge_rating.value, judge_rating.label) == (None, None)
        assert judge_rating.failure.startswith("scale: ")
        assert expect_row_problems(row(metric=metric, value=value)) == [("off_scale", 1, "value")]
        return
    for rating in (judge_rating, read_rating(metric=metric, value=value)):
        assert (rating.label if isinstance(expected, str) else rating.value) == expected
        assert rating.failure == ""


def test_off_scale_judge_values_are_counted_in_the_remarks() -> None:
    rows = [row(rater="judge", author="j", question_id=f"q{value}", value=value) for value in (7, 3, -1)]
    file = read_ratings(jsonl(*rows), "a.jsonl", scales=SCALES)
    assert [rating.failure for rating in file.ratings] == ["scale: 7", "", "scale: -1"]
    assert [(r.code, r.params) for r in file.remarks] == [("judge_off_scale", {"rows": 2})]


def test_nan_in_a_table_is_off_the_scale() -> None:
    data = b"question_id,metric,value,rater,author\nq,correctness,nan,judge,j@1\n"
    (rating,) = read_ratings(data, "a.csv", scales=SCALES).ratings
    assert (rating.value, rating.failure) == (None, "scale: nan")
    assert not math.isfinite(float("nan"))


def test_null_value_needs_a_reason() -> None:
    assert expect_row_problems(row(value=None)) == [("value_missing", 1, "value")]
    assert read_rating(value=None, reason="no reference").failure == "cannot_judge: no reference"
    judge_fields = {"rater": "judge", "author": "j@1", "value": None}
    assert read_rating(**judge_fields, reason="prose").failure == "reported: prose"
    assert read_rating(**judge_fields, reason="parse").failure == "parse"
    assert read_rating(**judge_fields, reason="refused: policy").failure == "refused: policy"


def test_parts_are_read_with_mapped_entailment_labels_and_no_value() -> None:
    rating = read_rating(
        metric="support",
        value=None,
        parts=[
            {"kind": "claim", "text": "a", "label": "Entailment", "context": 0, "start": 0, "end": 4},
            {"kind": "claim", "text": "b", "label": "Neutral"},
            {"kind": "nugget", "text": "c", "label": "Contradiction"},
            {"kind": "context", "context": 2, "label": "partial", "reason": "r"},
        ],
    )
    assert (rating.value, rating.failure) == (None, "")
    assert rating.parts == (
        Finding("claim", "a", "supported", 0, 0, 4),
        Finding("claim", "b", "unsupported"),
        Finding("nugget", "c", "contradicted"),
        Finding("context", "", "partial", 2, reason="r"),
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rater": None}, ("missing", 1, "rater")),
        ({"rater": "robot"}, ("unknown_choice", 1, "rater")),
        ({"author": ""}, ("missing", 1, "author")),
        ({"metric": None}, ("missing", 1, "metric")),
        ({"question_id": None}, ("missing", 1, "question_id")),
        ({"phase": "middle"}, ("unknown_choice", 1, "phase")),
        ({"probability": 0}, ("out_of_range", 1, "probability")),
        ({"probability": 1.5}, ("out_of_range", 1, "probability")),
        ({"created": "yesterday"}, ("not_a_date", 1, "created")),
        ({"blind": "perhaps"}, ("not_boolean", 1, "blind")),
        ({"parts": ["a"]}, ("not_mapping", 1, "parts[0]")),
        ({"parts": [{"kind": "word", "text": "a", "label": "partial"}]}, ("unknown_choice", 1, "parts[0].kind")),
        ({"parts": [{"kind": "claim", "text": "a", "label": "so"}]}, ("unknown_choice", 1, "parts[0].label")),
        ({"parts": [{"kind": "claim", "label": "partial"}]}, ("missing", 1, "parts[0].text")),
        (
            {"parts": [{"kind": "claim", "text": "a", "label": "partial", "start": 3, "end": 1}]},
            ("part_range", 1, "parts[0]"),
        ),
    ],
)
def test_invalid_field_is_one_problem_with_its_place(fields: dict[str, Any], expected: tuple[str, int, str]) -> None:
    assert expect_row_problems(row(**fields)) == [expected]


def test_invalid_boolean_is_quoted_in_its_problem() -> None:
    (problem,) = expect_problems(read_ratings, jsonl(row(blind="perhaps")), "a.jsonl", scales=SCALES)
    assert (problem.code, problem.params) == ("not_boolean", {"value": "perhaps"})


def test_unknown_metric_is_one_problem_with_a_row_count() -> None:
    rows = [row(question_id=str(i), metric="fluency") for i in range(3)]
    (problem,) = expect_problems(read_ratings, jsonl(*rows), "a.jsonl", scales=SCALES)
    assert (problem.code, problem.line, problem.params) == ("metric_unknown", 1, {"metric": "fluency", "rows": 3})
    (truncated,) = expect_problems(read_ratings, jsonl(row(metric="m" * 81)), "a.jsonl", scales=SCALES)
    assert truncated.params["metric"] == "m" * 80
    defined = SCALES | read_definitions(["fluency=1-5"])
    assert len(read_ratings(jsonl(*rows), "a.jsonl", scales=defined).ratings) == 3


def test_definitions_become_scales_by_metric_name() -> None:
    definitions = ["a=1..5", "b = 0..1:real", "c=-2..2", "d=bool", "e=class:x|y"]
    assert {name: str(scale) for name, scale in read_definitions(definitions).items()} == {
        "a": "levels 1..5",
        "b": "real 0..1",
        "c": "levels -2..2",
        "d": "yes_no",
        "e": "class x|y",
    }


@pytest.mark.parametrize("definitions", [["a"], ["=1..5"], ["a=5..1"], ["a=high"], ["a=1..5", "a=bool"]])
def test_invalid_definition_is_refused(definitions: list[str]) -> None:
    with pytest.raises(DomainError, match="bad_definition") as error:
        read_definitions(definitions)
    assert error.value.params == {"definition": definitions[-1]}


def test_rater_rates_an_answer_once_per_metric_and_phase() -> None:
    distinct_rows = [
        row(),
        row(author="lee"),
        row(phase="final"),
        row(sample=1),
        row(metric="support", value=1),
        row(rater="judge"),
    ]
    assert len(read_ratings(jsonl(*distinct_rows), "a.jsonl", scales=SCALES).ratings) == 6
    assert expect_row_problems(row(), row(value=5)) == [("duplicate_rating", 2, "")]


def pair(**fields: Any) -> dict[str, Any]:
    sides = {"answer_a": {"system": "s", "answer": "a"}, "answer_b": "b"}
    return {"pair_id": "p", "question": "x", **sides, "value": -2, "rater": "human", "author": "kim", **fields}


def test_pairs_and_ratings_are_read_from_one_file() -> None:
    file = read_ratings(jsonl(pair(domain="d", reason="shorter"), row()), "a.jsonl", scales=SCALES)
    (pair_row,) = file.pairs
    assert len(file.ratings) == 1
    assert (pair_row.pair_id, pair_row.value, pair_row.metric) == ("p", -2.0, "preference")
    assert (pair_row.answer_a, pair_row.answer_b) == (PairSide("s", "a"), PairSide("", "b"))
    assert (pair_row.reason, pair_row.metadata) == ("shorter", {"domain": "d"})


def test_pairs_follow_the_rules_of_ratings() -> None:
    assert expect_row_problems(pair(value=3)) == [("off_scale", 1, "value")]
    assert expect_row_problems(pair(value=0.5)) == [("off_scale", 1, "value")]
    assert expect_row_problems(pair(answer_b=None)) == [("missing", 1, "answer_b")]
    assert expect_row_problems(pair(answer_a={"system": "s"})) == [("missing", 1, "answer_a.answer")]
    assert expect_row_problems(pair(), pair()) == [("duplicate_rating", 2, "")]
    (judge_pair,) = read_ratings(jsonl(pair(value=9, rater="judge")), "a.jsonl", scales=SCALES).pairs
    assert judge_pair.failure == "scale: 9"
    table = 'pair_id,question,answer_a,answer_b,value,rater,author\np,x,"{""answer"": ""a""}",b|c,0,human,kim\n'
    (table_pair,) = read_ratings(table.encode(), "a.csv", scales=SCALES).pairs
    assert (table_pair.answer_a.answer, table_pair.answer_b.answer, table_pair.value) == ("a", "b|c", 0.0)
