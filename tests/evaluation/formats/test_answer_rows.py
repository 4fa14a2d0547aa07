"""Answer files: aliases, missing versus empty contexts, and refused values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.core.samples import AnswerSpec, ContextSpec
from evaluation.formats.answer_rows import ANSWER, CONTEXTS, QUESTION_ID, RETRIEVED_IDS, AnswerRow
from evaluation.formats.reading import read_answers
from tests.evaluation.formats.support import expect_problems, facts, jsonl, xlsx


def read_answer(**fields: Any) -> AnswerRow:
    (answer,) = read_answers(jsonl(row(**fields)), "a.jsonl").answers
    return answer


def row(**fields: Any) -> dict[str, Any]:
    return {"question_id": "q", "answer": "a", **fields}


def test_full_row_is_read_exactly() -> None:
    answer = read_answer(
        answer=" **a**\n",
        contexts=["plain", {"chunk_id": "k", "content": "t", "score": 0.5, "source": "s", "article": "제15조"}],
        retrieved_context_ids=["k", "k", "l"],
        sample=2,
        latency_seconds=1.25,
        confidence=0.9,
        model="m",
    )
    assert answer == AnswerRow(
        question_id="q",
        question="",
        answer=AnswerSpec(
            " **a**\n",
            (ContextSpec("plain"), ContextSpec("t", "k", 0.5, "s", {"article": "제15조"})),
            ("k", "k", "l"),
            1.25,
        ),
        answered=True,
        sample=2,
        confidence=0.9,
        error="",
        metadata={"model": "m"},
        line=1,
    )


@pytest.mark.parametrize("name", ANSWER)
def test_every_answer_alias_is_read(name: str) -> None:
    (answer,) = read_answers(jsonl({"question_id": "q", name: "a"}), "a.jsonl").answers
    assert answer.answer.text == "a"


@pytest.mark.parametrize("name", QUESTION_ID)
def test_every_question_id_alias_is_read(name: str) -> None:
    (answer,) = read_answers(jsonl({name: "q", "answer": "a"}), "a.jsonl").answers
    assert answer.question_id == "q"


def test_row_names_its_question_by_text_or_bare_id() -> None:
    by_text, by_id = read_answers(
        jsonl({"query": "why?", "answer": "a"}, {"id": "q", "answer": "a"}), "a.jsonl"
    ).answers
    assert (by_text.question_id, by_text.question) == ("", "why?")
    assert (by_id.question_id, by_id.question) == ("q", "")


@pytest.mark.parametrize("name", CONTEXTS)
def test_null_contexts_differ_from_empty_contexts(name: str) -> None:
    assert read_answer().answer.contexts is None
    assert read_answer(**{name: None}).answer.contexts is None
    assert read_answer(**{name: []}).answer.contexts == ()


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ("", None),
        ("null", None),
        ("[]", ()),
        ("one|two", (ContextSpec("one"), ContextSpec("two"))),
        ('"[{""id"": ""k"", ""text"": ""a|b""}]"', (ContextSpec("a|b", "k"),)),
    ],
)
def test_table_cells_distinguish_null_from_empty_contexts(cell: str, contexts: tuple[ContextSpec, ...] | None) -> None:
    data = f"question_id,answer,contexts\nq,a,{cell}\n".encode()
    assert read_answers(data, "a.csv").answers[0].answer.contexts == contexts


@pytest.mark.parametrize("name", RETRIEVED_IDS)
def test_retrieved_ids_suffice_without_an_answer(name: str) -> None:
    (answer,) = read_answers(jsonl({"question_id": "q", name: ["k"]}), "a.jsonl").answers
    assert (answer.answered, answer.answer.retrieved_ids, answer.answer.contexts) == (False, ("k",), None)


def test_error_replaces_the_answer() -> None:
    (answer,) = read_answers(jsonl({"question_id": "q", "error": "timeout"}), "a.jsonl").answers
    assert (answer.answered, answer.error) == (False, "timeout")


def test_empty_answer_is_an_answer_and_a_missing_one_is_a_problem() -> None:
    assert read_answer(answer="").answered
    assert facts(expect_problems(read_answers, jsonl(row(answer=None)), "a.jsonl")) == [("answer_missing", 1, "answer")]
    in_table = read_answers(b"question_id,answer,error\nq1,,\nq2,,down\n", "a.csv").answers
    assert [(a.answered, a.error) for a in in_table] == [(True, ""), (False, "down")]


def test_answer_must_name_its_question() -> None:
    (problem,) = expect_problems(read_answers, jsonl({"answer": "a"}), "a.jsonl")
    assert (problem.code, problem.field) == ("missing_among", "question_id")
    assert problem.params == {"names": "question_id, question", "columns": "answer"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"answer": True}, ("quote_value", 1, "answer")),
        ({"answer": ["a"]}, ("not_text", 1, "answer")),
        ({"question_id": False}, ("quote_value", 1, "question_id")),
        ({"contexts": "one"}, None),
        ({"contexts": {"text": "t"}}, ("not_list", 1, "contexts")),
        ({"contexts": [5]}, ("quote_value", 1, "contexts[0]")),
        ({"contexts": [{"title": "t"}]}, ("context_empty", 1, "contexts[0]")),
        ({"contexts": [{"text": "t", "score": "high"}]}, ("not_number", 1, "contexts[0].score")),
        ({"sample": -1}, ("out_of_range", 1, "sample")),
        ({"latency_seconds": -0.1}, ("out_of_range", 1, "latency_seconds")),
        ({"latency_seconds": True}, ("not_number", 1, "latency_seconds")),
        ({"confidence": "sure"}, ("not_number", 1, "confidence")),
        ({"response": "b"}, ("alias_twice", 1, "answer")),
    ],
)
def test_invalid_value_is_one_problem_with_its_place(fields: dict[str, Any], expected: Any) -> None:
    if expected is None:
        expected = ("not_list", 1, "contexts")
    assert facts(expect_problems(read_answers, jsonl(row(**fields)), "a.jsonl"))[0] == expected


def test_null_field_is_absent_from_answer_and_metadata() -> None:
    assert read_answer(contexts=None, sample=None, note=None).metadata == {"note": None}


def test_several_answers_to_a_question_need_sample_numbers() -> None:
    assert len(read_answers(jsonl(row(sample=0), row(sample=1)), "a.jsonl").answers) == 2
    (problem,) = expect_problems(read_answers, json.dumps([row(), row()]), "a.json")
    assert (problem.code, problem.params) == ("duplicate_answer", {"question": "q", "sample": 0, "first_line": 1})


def test_file_contains_answers_of_one_system_only() -> None:
    assert read_answers(jsonl(row(system="s")), "a.jsonl").system == "s"
    (problem,) = expect_problems(read_answers, jsonl(row(system="s"), row(system="t", question_id="r")), "a.jsonl")
    assert (problem.code, problem.line, problem.params) == ("several_systems", 2, {"systems": "s, t"})
    rows = [row(system=name, question_id=name) for name in "stuvwx"]
    (problem,) = expect_problems(read_answers, jsonl(*rows), "a.jsonl")
    assert problem.params == {"systems": "s, t, u, v, w"}  # five are enough to tell


def test_answers_are_read_from_a_mapping_with_metadata() -> None:
    document = {"k": 5, "results": [{"test_case_id": "q", "generated_answer": "a", "retrieved_chunk_ids": ["k"]}]}
    file = read_answers(json.dumps(document).encode(), "a.json")
    assert (file.set_metadata, file.answers[0].question_id) == ({"k": 5}, "q")
    assert [p.code for p in expect_problems(read_answers, '{"k": 5}', "a.json")] == ["shape_rows"]


def test_answers_are_refused_in_unsupported_formats() -> None:
    problems = expect_problems(read_answers, xlsx(["question_id", "answer"], ["q", "a"]), "a.xlsx")
    assert [p.code for p in problems] == ["format_not_accepted"]
