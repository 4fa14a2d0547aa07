"""Rating files: scales, failures that are kept and values that refuse the file, parts and pairs."""

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
from tests.evaluation.formats.support import facts, jsonl, refused

SCALES = {
    "correctness": Scale.parse("levels 1..5"),
    "support": Scale.parse("real 0..1"),
    "acceptable": Scale.parse("yes_no"),
    "label": Scale.parse("class CORRECT|WRONG|DONT_KNOW"),
}


def row(**fields: Any) -> dict[str, Any]:
    return {"question_id": "q", "metric": "correctness", "value": 4, "rater": "human", "author": "kim", **fields}


def read(**fields: Any) -> RatingRow:
    (rating,) = read_ratings(jsonl(row(**fields)), "a.jsonl", scales=SCALES).ratings
    return rating


def problems_of(*rows: Any) -> list[tuple[str, int | None, str]]:
    return facts(refused(read_ratings, jsonl(*rows), "a.jsonl", scales=SCALES))


def test_a_full_row_is_read() -> None:
    rating = read(
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


def test_phase_and_blindness_have_defaults_and_source_is_an_alias_of_rater() -> None:
    rating = read(rater=None, source="Judge", author="gpt-4@1")
    assert rating.origin == Origin(Rater.JUDGE, "gpt-4@1", Phase.INITIAL, True, None, None)
    assert read(source="survey").metadata == {"source": "survey"}
    assert read(phase="initial").origin.phase is Phase.INITIAL


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
def test_a_judge_off_the_scale_is_kept_as_failed_and_a_person_off_the_scale_refuses_the_file(
    metric: str, value: Any, expected: float | str | None
) -> None:
    judged = read(metric=metric, value=value, rater="judge", author="j@1")
    if expected is None:
        assert (judged.value, judged.label) == (None, None)
        assert judged.failure.startswith("scale: ")
        assert problems_of(row(metric=metric, value=value)) == [("off_scale", 1, "value")]
        return
    for rating in (judged, read(metric=metric, value=value)):
        assert (rating.label if isinstance(expected, str) else rating.value) == expected
        assert rating.failure == ""


def test_off_scale_values_of_judges_are_counted_in_the_remarks() -> None:
    rows = [row(rater="judge", author="j", question_id=f"q{value}", value=value) for value in (7, 3, -1)]
    read_file = read_ratings(jsonl(*rows), "a.jsonl", scales=SCALES)
    assert [rating.failure for rating in read_file.ratings] == ["scale: 7", "", "scale: -1"]
    assert [(r.code, r.params) for r in read_file.remarks] == [("judge_off_scale", {"rows": 2})]


def test_not_a_number_in_a_table_is_off_the_scale() -> None:
    data = b"question_id,metric,value,rater,author\nq,correctness,nan,judge,j@1\n"
    (rating,) = read_ratings(data, "a.csv", scales=SCALES).ratings
    assert (rating.value, rating.failure) == (None, "scale: nan")
    assert not math.isfinite(float("nan"))


def test_null_needs_a_reason() -> None:
    assert problems_of(row(value=None)) == [("value_missing", 1, "value")]
    assert read(value=None, reason="no reference").failure == "cannot_judge: no reference"
    judged = {"rater": "judge", "author": "j@1", "value": None}
    assert read(**judged, reason="prose").failure == "reported: prose"
    assert read(**judged, reason="parse").failure == "parse"
    assert read(**judged, reason="refused: policy").failure == "refused: policy"


def test_parts_are_read_with_labels_of_entailment_mapped_and_need_no_value() -> None:
    rating = read(
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
def test_a_wrong_field_is_one_problem_with_its_place(fields: dict[str, Any], expected: tuple[str, int, str]) -> None:
    assert problems_of(row(**fields)) == [expected]


def test_a_word_that_is_no_truth_is_repeated() -> None:
    (problem,) = refused(read_ratings, jsonl(row(blind="perhaps")), "a.jsonl", scales=SCALES)
    assert (problem.code, problem.params) == ("not_boolean", {"value": "perhaps"})


def test_an_unknown_metric_is_one_problem_with_its_rows_counted() -> None:
    rows = [row(question_id=str(i), metric="fluency") for i in range(3)]
    (problem,) = refused(read_ratings, jsonl(*rows), "a.jsonl", scales=SCALES)
    assert (problem.code, problem.line, problem.params) == ("metric_unknown", 1, {"metric": "fluency", "rows": 3})
    (long,) = refused(read_ratings, jsonl(row(metric="m" * 81)), "a.jsonl", scales=SCALES)
    assert long.params["metric"] == "m" * 80
    defined = SCALES | read_definitions(["fluency=1-5"])
    assert len(read_ratings(jsonl(*rows), "a.jsonl", scales=defined).ratings) == 3


def test_definitions_are_scales_by_name() -> None:
    definitions = ["a=1..5", "b = 0..1:real", "c=-2..2", "d=bool", "e=class:x|y"]
    assert {name: str(scale) for name, scale in read_definitions(definitions).items()} == {
        "a": "levels 1..5",
        "b": "real 0..1",
        "c": "levels -2..2",
        "d": "yes_no",
        "e": "class x|y",
    }


@pytest.mark.parametrize("definitions", [["a"], ["=1..5"], ["a=5..1"], ["a=high"], ["a=1..5", "a=bool"]])
def test_a_definition_that_is_none_is_refused(definitions: list[str]) -> None:
    with pytest.raises(DomainError, match="bad_definition") as refused:
        read_definitions(definitions)
    assert refused.value.params == {"definition": definitions[-1]}


def test_one_rater_rates_an_answer_once_per_metric_and_phase() -> None:
    fine = [
        row(),
        row(author="lee"),
        row(phase="final"),
        row(sample=1),
        row(metric="support", value=1),
        row(rater="judge"),
    ]
    assert len(read_ratings(jsonl(*fine), "a.jsonl", scales=SCALES).ratings) == 6
    assert problems_of(row(), row(value=5)) == [("duplicate_rating", 2, "")]


def pair(**fields: Any) -> dict[str, Any]:
    sides = {"answer_a": {"system": "s", "answer": "a"}, "answer_b": "b"}
    return {"pair_id": "p", "question": "x", **sides, "value": -2, "rater": "human", "author": "kim", **fields}


def test_pairs_stand_beside_ratings() -> None:
    read_file = read_ratings(jsonl(pair(domain="d", reason="shorter"), row()), "a.jsonl", scales=SCALES)
    (read_pair,) = read_file.pairs
    assert len(read_file.ratings) == 1
    assert (read_pair.pair_id, read_pair.value, read_pair.metric) == ("p", -2.0, "preference")
    assert (read_pair.answer_a, read_pair.answer_b) == (PairSide("s", "a"), PairSide("", "b"))
    assert (read_pair.reason, read_pair.metadata) == ("shorter", {"domain": "d"})


def test_pairs_keep_the_same_rules() -> None:
    assert problems_of(pair(value=3)) == [("off_scale", 1, "value")]
    assert problems_of(pair(value=0.5)) == [("off_scale", 1, "value")]
    assert problems_of(pair(answer_b=None)) == [("missing", 1, "answer_b")]
    assert problems_of(pair(answer_a={"system": "s"})) == [("missing", 1, "answer_a.answer")]
    assert problems_of(pair(), pair()) == [("duplicate_rating", 2, "")]
    (judged,) = read_ratings(jsonl(pair(value=9, rater="judge")), "a.jsonl", scales=SCALES).pairs
    assert judged.failure == "scale: 9"
    table = 'pair_id,question,answer_a,answer_b,value,rater,author\np,x,"{""answer"": ""a""}",b|c,0,human,kim\n'
    (in_table,) = read_ratings(table.encode(), "a.csv", scales=SCALES).pairs
    assert (in_table.answer_a.answer, in_table.answer_b.answer, in_table.value) == ("a", "b|c", 0.0)
