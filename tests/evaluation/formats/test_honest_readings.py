"""Regressions: lists written by ``to_csv``, unanswered rows, and references and passages under names of other tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import InvalidFile, Problem
from evaluation.core.samples import ContextSpec
from evaluation.formats.export import csv_chunks
from evaluation.formats.literals import LiteralSyntaxError, scan_literal
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.tree import Limits, Problems, TreeBuilder, plain_value
from tests.evaluation.formats.support import expect_problems, facts, jsonl

PLAIN = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
).filter(lambda value: isinstance(value, list | dict))


def scan(text: str) -> Any:
    problems = Problems("f")
    builder = TreeBuilder(problems, Limits())
    scan_literal(text, 1, builder)
    assert builder.root is not None
    return plain_value(builder.root)


@given(PLAIN)
def test_python_literals_round_trip(value: Any) -> None:
    if not any(character in repr(value) for character in ("\\x00", "\\ud")):
        assert scan(repr(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a' 'b']", ["a", "b"]),  # str of a numpy array, which Python itself would read as the one text "ab"
        ("['a'\n \"b's\"]", ["a", "b's"]),
        ("[array(['a', 'b'], dtype=object) array(['c'], dtype='<U1')]", [["a", "b"], ["c"]]),
        ("[np.str_('a'), np.str_('b')]", ["a", "b"]),
        ("[12 45]", ["12", "45"]),
        ("('a', 'b')", ["a", "b"]),
        ("('a',)", ["a"]),
        ("[{'id': 'k', 'text': \"it's\"}]", [{"id": "k", "text": "it's"}]),
    ],
)
def test_numpy_and_pandas_lists_are_read(text: str, value: Any) -> None:
    assert scan(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "['a' ... 'z']",
        "['a' 'b', 'c']",
        "['a'",
        "['a'] b",
        "[a]",
        "['a''b']",
        "__import__('os')",
        "[f()]",
        "array(" * 99,
    ],
)
def test_incomplete_lists_are_refused(text: str) -> None:
    with pytest.raises(LiteralSyntaxError):
        scan(text)


@pytest.mark.parametrize("cell", ["['a', 'b']", "['a' 'b']", '[""a"", ""b""]', "a|b"])
def test_ragas_lists_in_csv_are_lists(cell: str) -> None:
    """A list read as one text holding the brackets would match nothing and lower recall to zero."""
    text = f'user_input,retrieved_contexts,retrieved_context_ids,response\nq,"{cell}","{cell}",r\n'
    file = read_answers(text.encode(), "ragas.csv")
    (answer,) = file.answers
    assert answer.answer.contexts == (ContextSpec("a"), ContextSpec("b"))
    assert answer.answer.retrieved_ids == ("a", "b")
    assert ("lists_read" in [remark.code for remark in file.remarks]) == ("'" in cell)


def test_unreadable_list_is_refused_with_row_and_field() -> None:
    text = "question,retrieved_contexts,answer\nq,\"['a' ... 'z']\",r\n"
    assert facts(expect_problems(read_answers, text, "a.csv")) == [("cell_json", 2, "contexts")]


def test_list_text_in_json_is_read_only_in_list_fields() -> None:
    (answer,) = read_answers(jsonl({"question": "q", "answer": "['a']", "contexts": "['b']"}), "a.jsonl").answers
    assert (answer.answer.text, answer.answer.contexts) == ("['a']", (ContextSpec("b"),))
    (question,) = read_questions(jsonl({"question": "q", "reference": '("Foo" is right)'}), "a.jsonl").questions
    assert question.references == ('("Foo" is right)',)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"input,actual_output,expected_output\nq,r,e\np,,e\n", "goldens.csv"),
        (
            jsonl(
                {"input": "q", "actual_output": "r", "expected_output": "e"},
                {"input": "p", "actual_output": None, "expected_output": "e"},
            ),
            "goldens.jsonl",
        ),
    ],
)
def test_deepeval_golden_without_output_is_unanswered(data: bytes, name: str) -> None:
    file = read_answers(data, name)
    assert [(row.question, row.answer.text) for row in file.answers] == [("q", "r")]
    assert [row.params for row in file.remarks if row.code == "no_answer_yet"] == [{"rows": 1}]
    assert len(read_questions(data, name).questions) == 2


@pytest.mark.parametrize("columns", ["input,actual_output", "input,actual_output,expected_output"])
def test_goldens_without_any_answer_are_refused(columns: str) -> None:
    text = f"{columns}\nq,{',' * (columns.count(',') - 1)}\n"
    assert [problem.code for problem in expect_problems(read_answers, text, "a.csv")] == ["no_answers"]


def test_empty_answer_of_a_table_is_remarked() -> None:
    file = read_answers(b"question_id,answer\na,\nb,x\n", "a.csv")
    assert [remark.params for remark in file.remarks if remark.code == "empty_answers"] == [{"rows": 1}]


@pytest.mark.parametrize(
    ("row", "references", "ids"),
    [
        ({"input": "q", "expectedOutput": "a"}, ("a",), ()),  # Langfuse
        ({"query": "q", "generation_gt": ["a"], "retrieval_gt": [["d"], ["e"]]}, ("a",), ("d", "e")),  # AutoRAG
        ({"query": "q", "gt_answer": "a"}, ("a",), ()),  # RAGChecker
        ({"query": "q", "reference_answer": "a", "reference_contexts": ["c"]}, ("a",), ()),  # LlamaIndex
    ],
)
def test_reference_names_of_other_tools_are_read(
    row: dict[str, Any], references: tuple[str, ...], ids: tuple[str, ...]
) -> None:
    (question,) = read_questions(json.dumps([row]).encode(), "a.json").questions
    assert (question.references, question.ground_truth_chunk_ids) == (references, ids)


def test_autorag_lists_are_flattened_and_alternatives_remarked() -> None:
    cell = "[array(['d', 'e'], dtype=object) array(['f'], dtype=object)]"
    file = read_questions(f'qid,query,retrieval_gt\n1,q,"{cell}"\n'.encode(), "qa.csv")
    assert file.questions[0].ground_truth_chunk_ids == ("d", "e", "f")
    assert [remark.params for remark in file.remarks if remark.code == "passages_alternative"] == [{"rows": 1}]


def test_ragchecker_passages_are_read() -> None:
    row = {"query_id": "1", "query": "q", "response": "r", "retrieved_context": [{"doc_id": "d", "text": "t"}]}
    (answer,) = read_answers(json.dumps({"results": [row]}).encode(), "checking.json").answers
    assert answer.answer.contexts == (ContextSpec("t", "d"),)


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ({"question": "q", "ideal_reply": "a"}, {"reference_not_found": "ideal_reply"}),
        ({"question": "q", "gold_text": "a", "doc_ids": ["d"]}, None),
        ({"question": "q", "모범 답안": "a"}, {"reference_not_found": "모범 답안"}),
        ({"question": "q", "reference": "a", "expected_tone": "kind"}, {}),
    ],
)
def test_missing_reference_column_is_remarked_with_candidates(
    row: dict[str, Any], asked: dict[str, str] | None
) -> None:
    remarks = read_questions(jsonl(row), "a.jsonl").remarks
    names = {remark.code: remark.params["names"] for remark in remarks if remark.code.endswith("not_found")}
    assert names == ({"reference_not_found": "gold_text", "passages_not_found": "doc_ids"} if asked is None else asked)


def test_missing_passage_column_is_remarked_with_candidates() -> None:
    file = read_answers(jsonl({"question": "q", "answer": "a", "docs_used": ["d"]}), "a.jsonl")
    assert [remark.params for remark in file.remarks if remark.code == "passages_not_found"] == [{"names": "docs_used"}]


def test_one_file_contains_questions_and_answers() -> None:
    data = jsonl(
        {"question": "q", "answer": "said", "ground_truth": "right", "contexts": ["c"]},
        {"question": "p", "answer": "said", "ground_truth": None, "contexts": []},
    )
    questions = read_questions(data, "both.jsonl").questions
    assert [row.references for row in questions] == [("right",), ()]
    assert [row.answer.text for row in read_answers(data, "both.jsonl").answers] == ["said", "said"]


@given(st.text("[]()'\"ab, \\{}:", max_size=30))
def test_a_cell_of_passages_is_read_or_refused_by_name(cell: str) -> None:
    text = csv_chunks(["question", "answer", "contexts"], [["q", "a", cell]])
    problems: tuple[Problem, ...] = ()
    try:
        read_answers(b"".join(text), "a.csv")
    except InvalidFile as refusal:
        problems = refusal.problems
    assert all((problem.line, problem.field[:8]) == (2, "contexts") for problem in problems)


@pytest.mark.parametrize(
    ("cell", "ids"), [("d", ("d",)), ("d|e", ("d", "e")), ("", ()), ('"[""d"", [""e""]]"', ("d", "e"))]
)
def test_passage_ids_are_read_from_a_cell(cell: str, ids: tuple[str, ...]) -> None:
    file = read_questions(f"question,ground_truth_chunk_ids\nq,{cell}\n".encode(), "a.csv")
    assert file.questions[0].ground_truth_chunk_ids == ids
