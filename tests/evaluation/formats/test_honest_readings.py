"""Files that were read wrongly without a word: lists that ``to_csv`` wrote, answers that are not there yet, references
and passages under names of others."""

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
from tests.evaluation.formats.support import facts, jsonl, refused

PLAIN = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
).filter(lambda value: isinstance(value, list | dict))


def scanned(text: str) -> Any:
    problems = Problems("f")
    builder = TreeBuilder(problems, Limits())
    scan_literal(text, 1, builder)
    assert builder.root is not None
    return plain_value(builder.root)


@given(PLAIN)
def test_what_python_prints_is_read_back(value: Any) -> None:
    if not any(character in repr(value) for character in ("\\x00", "\\ud")):
        assert scanned(repr(value)) == value


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
def test_what_numpy_and_pandas_print_is_read(text: str, value: Any) -> None:
    assert scanned(text) == value


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
def test_what_is_no_whole_list_is_not_guessed(text: str) -> None:
    with pytest.raises(LiteralSyntaxError):
        scanned(text)


@pytest.mark.parametrize("cell", ["['a', 'b']", "['a' 'b']", '[""a"", ""b""]', "a|b"])
def test_ragas_lists_in_csv_are_lists(cell: str) -> None:
    """The twelve samples whose recall fell from 1.000 to 0.000: one text holding the brackets is found nowhere."""
    text = f'user_input,retrieved_contexts,retrieved_context_ids,response\nq,"{cell}","{cell}",r\n'
    read = read_answers(text.encode(), "ragas.csv")
    (answer,) = read.answers
    assert answer.answer.contexts == (ContextSpec("a"), ContextSpec("b"))
    assert answer.answer.retrieved_ids == ("a", "b")
    assert ("lists_read" in [one.code for one in read.remarks]) == ("'" in cell)


def test_a_list_that_cannot_be_read_is_refused_with_its_row_and_field() -> None:
    text = "question,retrieved_contexts,answer\nq,\"['a' ... 'z']\",r\n"
    assert facts(refused(read_answers, text, "a.csv")) == [("cell_json", 2, "contexts")]


def test_a_text_in_json_that_is_a_list_is_read_as_one_and_others_stay() -> None:
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
def test_a_golden_of_deepeval_without_output_is_no_answer_yet(data: bytes, name: str) -> None:
    read = read_answers(data, name)
    assert [(one.question, one.answer.text) for one in read.answers] == [("q", "r")]
    assert [one.params for one in read.remarks if one.code == "no_answer_yet"] == [{"rows": 1}]
    assert len(read_questions(data, name).questions) == 2


@pytest.mark.parametrize("columns", ["input,actual_output", "input,actual_output,expected_output"])
def test_goldens_that_nobody_answered_are_no_answers(columns: str) -> None:
    text = f"{columns}\nq,{',' * (columns.count(',') - 1)}\n"
    assert [one.code for one in refused(read_answers, text, "a.csv")] == ["no_answers"]


def test_an_empty_answer_of_a_table_is_said() -> None:
    read = read_answers(b"question_id,answer\na,\nb,x\n", "a.csv")
    assert [one.params for one in read.remarks if one.code == "empty_answers"] == [{"rows": 1}]


@pytest.mark.parametrize(
    ("row", "references", "ids"),
    [
        ({"input": "q", "expectedOutput": "a"}, ("a",), ()),  # Langfuse
        ({"query": "q", "generation_gt": ["a"], "retrieval_gt": [["d"], ["e"]]}, ("a",), ("d", "e")),  # AutoRAG
        ({"query": "q", "gt_answer": "a"}, ("a",), ()),  # RAGChecker
        ({"query": "q", "reference_answer": "a", "reference_contexts": ["c"]}, ("a",), ()),  # LlamaIndex
    ],
)
def test_references_under_the_names_of_others_are_read(
    row: dict[str, Any], references: tuple[str, ...], ids: tuple[str, ...]
) -> None:
    (question,) = read_questions(json.dumps([row]).encode(), "a.json").questions
    assert (question.references, question.ground_truth_chunk_ids) == (references, ids)


def test_autorag_lists_printed_by_pandas_are_flat_and_alternatives_are_said() -> None:
    cell = "[array(['d', 'e'], dtype=object) array(['f'], dtype=object)]"
    read = read_questions(f'qid,query,retrieval_gt\n1,q,"{cell}"\n'.encode(), "qa.csv")
    assert read.questions[0].ground_truth_chunk_ids == ("d", "e", "f")
    assert [one.params for one in read.remarks if one.code == "passages_alternative"] == [{"rows": 1}]


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
def test_it_is_asked_where_nothing_became_a_reference(row: dict[str, Any], asked: dict[str, str] | None) -> None:
    remarks = read_questions(jsonl(row), "a.jsonl").remarks
    found = {one.code: one.params["names"] for one in remarks if one.code.endswith("not_found")}
    assert found == ({"reference_not_found": "gold_text", "passages_not_found": "doc_ids"} if asked is None else asked)


def test_it_is_asked_where_nothing_became_a_passage() -> None:
    read = read_answers(jsonl({"question": "q", "answer": "a", "docs_used": ["d"]}), "a.jsonl")
    assert [one.params for one in read.remarks if one.code == "passages_not_found"] == [{"names": "docs_used"}]


def test_one_file_holds_questions_and_answers() -> None:
    data = jsonl(
        {"question": "q", "answer": "said", "ground_truth": "right", "contexts": ["c"]},
        {"question": "p", "answer": "said", "ground_truth": None, "contexts": []},
    )
    questions = read_questions(data, "both.jsonl").questions
    assert [one.references for one in questions] == [("right",), ()]
    assert [one.answer.text for one in read_answers(data, "both.jsonl").answers] == ["said", "said"]


@given(st.text("[]()'\"ab, \\{}:", max_size=30))
def test_a_cell_of_passages_is_read_or_refused_by_name(cell: str) -> None:
    text = csv_chunks(["question", "answer", "contexts"], [["q", "a", cell]])
    problems: tuple[Problem, ...] = ()
    try:
        read_answers(b"".join(text), "a.csv")
    except InvalidFile as refusal:
        problems = refusal.problems
    assert all((one.line, one.field[:8]) == (2, "contexts") for one in problems)


@pytest.mark.parametrize(
    ("cell", "ids"), [("d", ("d",)), ("d|e", ("d", "e")), ("", ()), ('"[""d"", [""e""]]"', ("d", "e"))]
)
def test_ids_of_passages_stand_in_a_cell(cell: str, ids: tuple[str, ...]) -> None:
    read = read_questions(f"question,ground_truth_chunk_ids\nq,{cell}\n".encode(), "a.csv")
    assert read.questions[0].ground_truth_chunk_ids == ids
