"""Row-by-row reading equals whole-file reading for answers and questions, at any chunk boundary."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats import spool, streaming
from evaluation.formats.answer_rows import AnswerRow
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.shaping import read_map
from evaluation.formats.streaming import AnswerStream, MemorySource, read_question_set
from tests.examples import max_examples

pytestmark = pytest.mark.usefixtures("row_by_row")


@pytest.fixture
def row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SMALL_BYTES", 0)
    monkeypatch.setattr(streaming, "_CHUNK_BYTES", 7)


TEXT = st.text(st.sampled_from('abc 한글"\\,;[]{}\n\té'), max_size=12)
ROW = st.fixed_dictionaries(
    {"question_id": st.integers(0, 10**6).map(str), "answer": TEXT},
    optional={
        "contexts": st.lists(TEXT, max_size=2),
        "latency_seconds": st.floats(0, 100),
        "more": st.one_of(TEXT, st.lists(st.integers(), max_size=2), st.none()),
    },
)
ROWS = st.lists(ROW, min_size=1, max_size=5)
SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
ReadResult = tuple[list[AnswerRow], Any] | list[Problem]


def read_streamed(data: bytes, name: str, **options: Any) -> ReadResult:
    stream = AnswerStream(MemorySource(data), name, **options)
    try:
        rows = list(stream)
    except InvalidFile as error:
        return list(error.problems)
    assert stream.bytes_read == stream.size == len(data)
    return rows, stream.facts


def read_whole(data: bytes, name: str, **options: Any) -> ReadResult:
    try:
        file = read_answers(data, name, **options)
    except InvalidFile as error:
        return list(error.problems)
    names = ("system", "metadata_keys", "remarks", "format", "encoding", "shape", "columns")
    return list(file.answers), tuple(getattr(file, field) for field in names)


def read_answers_both_ways(data: bytes, name: str, **options: Any) -> ReadResult:
    """The answers as streamed, checked against reading the whole file."""
    result, expected = read_streamed(data, name, **options), read_whole(data, name, **options)
    if isinstance(result, tuple) and isinstance(expected, tuple):
        rows, facts = result
        names = ("system", "metadata_keys", "remarks", "format", "encoding", "shape", "columns")
        assert (rows, tuple(getattr(facts, field) for field in names)) == expected
    else:
        assert result == expected
    return result


@settings(max_examples=max_examples(60), **SETTINGS)
@given(ROWS, st.booleans())
def test_answers_as_json_lines(rows: list[dict[str, Any]], marked: bool) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    read_answers_both_ways(b"\xef\xbb\xbf" * marked + lines.encode(), "a.jsonl")


@settings(max_examples=max_examples(60), **SETTINGS)
@given(ROWS, st.sampled_from([None, 1, "\t"]))
def test_answers_as_a_json_list(rows: list[dict[str, Any]], indent: Any) -> None:
    read_answers_both_ways(json.dumps(rows, ensure_ascii=False, indent=indent).encode(), "a.json")


@settings(max_examples=max_examples(60), **SETTINGS)
@given(ROWS)
def test_answers_as_a_table(rows: list[dict[str, Any]]) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["question_id", "answer", "contexts"])
    writer.writerows([row["question_id"], row["answer"], json.dumps(row.get("contexts"))] for row in rows)
    read_answers_both_ways(out.getvalue().encode(), "a.csv")


@pytest.mark.parametrize("value", ["", " ", "x"])
def test_column_without_a_name_is_left_out_if_it_is_empty(value: str) -> None:
    rows = "".join(f"q{n},,a,{value if n == 70 else ''},b,\n" for n in range(80))
    result = read_answers_both_ways(f"Notes,,,,,\nquestion_id,,answer,,more,\n{rows},,,,,\n".encode(), "a.csv")
    if value == "x":
        (problem,) = result
        assert isinstance(problem, Problem)
        assert (problem.code, problem.line, problem.params) == ("header_empty", 2, {"column": 4})
    else:
        assert isinstance(result, tuple)
        assert (len(result[0]), result[1].metadata_keys) == (80, ("more",))


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        ('[{"question_id": "q", "answer": "a"} {"question_id": "r", "answer": "a"}]', ["json_syntax"]),
        ('[{"question_id": "q", "answer": "a"}', ["json_syntax"]),
        ('[{"question_id": "q", "answer": "a"}] x', ["json_syntax"]),
        ('[{"question_id": "q", "answer": "a"},]', ["json_syntax"]),
        ('[{"question_id": "q", "answer": "a]', ["json_syntax"]),
        ('[{"question_id": "q", "answer": "a"}, 5]', ["row_not_mapping"]),
        ("[]", ["no_rows"]),
        ('[{"question_id": "q", "answer": true}]', ["quote_value"]),
    ],
)
def test_problems_of_a_list_equal_those_of_the_whole_file(data: str, codes: list[str]) -> None:
    problems = read_streamed(data.encode(), "a.json")
    assert isinstance(problems, list)
    assert [problem.code for problem in problems] == codes
    expected = read_whole(data.encode(), "a.json")
    assert isinstance(expected, list)
    assert [(problem.code, problem.line) for problem in expected] == [
        (problem.code, problem.line) for problem in problems
    ]


def test_table_problem_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (syntax_problem,) = read_streamed(b'question_id,"answer', "a.csv")
    assert isinstance(syntax_problem, Problem)
    assert (syntax_problem.code, syntax_problem.line) == ("csv_syntax", 1)
    monkeypatch.setattr(streaming, "_LIMITS", dataclasses.replace(streaming._LIMITS, columns=1))
    (column_problem,) = read_streamed(b"question_id,answer\nq,a\n", "a.csv")
    assert isinstance(column_problem, Problem)
    assert (column_problem.code, column_problem.line, column_problem.params) == ("too_many_columns", 1, {"limit": 1})


def test_invalid_lines_are_reported_with_their_numbers() -> None:
    lines = ['{"question_id": "q", "answer": "a"}', "{", "", '{"question_id": "q", "answer": "a"}', '{"answer": true}']
    problems = read_answers_both_ways("\n".join(lines).encode(), "a.jsonl")
    assert [(problem.line, problem.code) for problem in problems if isinstance(problem, Problem)] == [
        (2, "json_syntax"),
        (4, "duplicate_answer"),
        (5, "missing_among"),
        (5, "quote_value"),
    ]


def test_invalid_utf8_byte_is_reported_with_its_line() -> None:
    data = (
        b"".join(b'{"question_id": "%d", "answer": "caf\xc3\xa9"}\n' % n for n in range(99)) + b'{"answer": "\xff"}\n'
    )
    (problem,) = read_streamed(data, "a.jsonl")
    assert (problem.code, problem.line) == ("encoding_damaged", 100)


def test_known_shapes_and_maps_of_answers_are_streamed() -> None:
    ragas = [{"user_input": f"q{n}?", "response": "a", "retrieved_contexts": ["c"], "reference": "r"} for n in range(3)]
    result = read_answers_both_ways("".join(json.dumps(row) + "\n" for row in ragas).encode(), "a.jsonl")
    assert isinstance(result, tuple)
    assert result[1].shape == "Ragas"
    shape = read_map(b'{"answers": {"question_id": "about.id", "answer": "said"}}')
    rows = [{"about": {"id": f"q{n}"}, "said": "a", "more": n} for n in range(60)]
    read_answers_both_ways(json.dumps(rows).encode(), "a.json", shape=shape)


def test_row_length_limit_is_inclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    row = b'{"question_id": "q", "answer": "%s"}'
    monkeypatch.setattr(streaming, "MAX_ROW_BYTES", 100)
    result = read_streamed(b"[" + row % (b"a" * (100 - len(row % b""))) + b"]", "a.json")
    assert isinstance(result, tuple)
    (problem,) = read_streamed(b"[" + row % (b"a" * 120) + b"]", "a.json")
    assert isinstance(problem, Problem)
    assert (problem.code, problem.params["limit"]) == ("text_too_long", 100)


def test_rows_and_bytes_are_limited() -> None:
    data = b"".join(b'{"question_id": "%d", "answer": "a"}\n' % n for n in range(5))
    assert [problem.code for problem in read_streamed(data, "a.jsonl", max_rows=4)] == ["too_many_rows"]  # type: ignore[union-attr]
    assert isinstance(read_streamed(data, "a.jsonl", max_rows=5, max_bytes=1), tuple)
    document = b'{"answers": ' + json.dumps([{"question_id": "q", "answer": "a"}]).encode() + b"}"
    assert [problem.code for problem in read_streamed(document, "a.json", max_bytes=9)] == ["file_too_large"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value",
    [
        *(
            "NaN",
            "-Infinity",
            "1e999",
            "12345678901234567890",
            "123456789012345678901234567890",
            "-0",
            "2.50",
            "[1, 2.50]",
        ),
        *('"\\ud800"', '"\\u0000"', '{"a": 1, "a": 2}', "[" * 40 + "]" * 40, "[" * 29 + "]" * 29, "true", "null", "01"),
        '"' + "x" * 1_000_001 + '"',
    ],
)
def test_unusual_values_are_read_or_refused_alike(value: str) -> None:
    read_answers_both_ways(
        f'{{"question_id": "q", "answer": "a", "more": {value}}}\n{{"question_id": "r", "answer": "a"}}'.encode(),
        "a.jsonl",
    )
    read_answers_both_ways(f'[{{"question_id": "q", "answer": "a", "more": {value}}}]'.encode(), "a.json")


QUESTION = st.fixed_dictionaries(
    {"question": TEXT},
    optional={
        "id": st.integers(0, 9).map(str),
        "answer": TEXT,
        "expected_answer": st.one_of(TEXT, st.lists(TEXT, max_size=2)),
        "expected_keywords": st.lists(st.one_of(TEXT, st.lists(TEXT, max_size=2)), max_size=2),
        "category": st.sampled_from(["", "easy", "negative"]),
        "check": st.sampled_from(["", "mine", "should_not_hallucinate"]),
        "retrieval_gt": st.lists(st.lists(TEXT, max_size=2), max_size=2),
        "hops": st.one_of(st.integers(0, 3), st.lists(TEXT, max_size=1)),
        "contexts": st.lists(TEXT, max_size=1),
        "topic": st.one_of(TEXT, st.none()),
    },
)
QUESTIONS = st.lists(QUESTION, min_size=1, max_size=5)


def read_questions_both_ways(data: bytes, name: str, **options: Any) -> Any:
    """The questions as streamed, checked against reading the whole file."""

    def read_or_problems(reader: Any, source: Any) -> Any:
        try:
            file = reader(source, name, **options)
        except InvalidFile as error:
            return list(error.problems)
        metadata = {question.id: dict(file.metadata.get(question.id, {})) for question in file.questions}
        file_facts = (file.set_metadata, file.metadata_keys, file.remarks, file.format, file.encoding, file.shape)
        return list(file.questions), metadata, *file_facts, file.columns

    result = read_or_problems(read_question_set, MemorySource(data))
    assert result == read_or_problems(read_questions, data)
    return result


@settings(max_examples=max_examples(100), **SETTINGS)
@given(QUESTIONS, st.booleans(), st.sampled_from(["", "topic", "answer", "category"]))
def test_questions_as_json_lines(rows: list[dict[str, Any]], marked: bool, group_by: str) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    read_questions_both_ways(b"\xef\xbb\xbf" * marked + lines.encode(), "a.jsonl", group_by=group_by)


@settings(max_examples=max_examples(60), **SETTINGS)
@given(QUESTIONS, st.sampled_from([None, 1]))
def test_questions_as_a_list_and_a_table(rows: list[dict[str, Any]], indent: Any) -> None:
    read_questions_both_ways(json.dumps(rows, ensure_ascii=False, indent=indent).encode(), "a.json")
    out = io.StringIO(newline="")
    names = ["question", "id", "answer", "expected_keywords", "topic"]
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows({**row, "expected_keywords": json.dumps(row.get("expected_keywords", ""))} for row in rows)
    read_questions_both_ways(out.getvalue().encode(), "a.csv")


def test_later_row_can_change_the_meaning_of_answer() -> None:
    """``answer`` is the reference unless a later row has a separate reference."""
    lines = [{"question": f"{n}?", "answer": "a", "source": n} for n in range(60)]
    questions, metadata, *_ = read_questions_both_ways("\n".join(map(json.dumps, lines)).encode(), "a.jsonl")
    assert (questions[0].references, metadata[questions[0].id]) == (("a",), {"source": 0})
    lines.append({"question": "last?", "expected_answer": "b"})
    questions, metadata, *_ = read_questions_both_ways("\n".join(map(json.dumps, lines)).encode(), "a.jsonl")
    assert (questions[0].references, metadata[questions[0].id]) == ((), {"source": 0, "answer": "a"})
    lines[-1] = {"question": "last?", "answer": "b", "contexts": ["c"]}
    (problem,) = read_questions_both_ways("\n".join(map(json.dumps, lines)).encode(), "a.jsonl")
    assert (problem.code, problem.line) == ("looks_like_answers", 61)


def test_question_problems_have_their_lines() -> None:
    lines = ['{"id": "1", "question": "a?"}', "{", '{"id": "1", "question": "b?"}', "5", '{"question": true}']
    problems = read_questions_both_ways("\n".join(lines).encode(), "a.jsonl")
    codes = ["json_syntax", "duplicate_id", "row_not_mapping", "quote_value"]
    assert [(problem.line, problem.code) for problem in problems] == list(zip((2, 3, 4, 5), codes, strict=True))
    (same_line,) = read_questions_both_ways(b'[{"id": "1", "question": "a?"}, {"id": "1", "question": "b?"}]', "a.json")
    assert same_line.code == "duplicate_id"


def test_known_shapes_and_maps_of_questions_are_streamed() -> None:
    ragas = [{"user_input": f"q{n}?", "reference": "r", "synthesizer_name": "s"} for n in range(3)]
    result = read_questions_both_ways("".join(json.dumps(row) + "\n" for row in ragas).encode(), "a.jsonl")
    assert result[-2] == "Ragas"
    shape = read_map(b'{"questions": {"question": "ask.text", "id": "nr"}}')
    rows = [{"nr": n, "ask": {"text": f"q{n}?"}, "more": n} for n in range(60)]
    read_questions_both_ways(json.dumps(rows).encode(), "a.json", shape=shape)


def test_streamed_questions_are_spooled_and_not_held_in_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(b'{"question": "%d?"}\n' % n for n in range(5))
    file = read_question_set(MemorySource(data), "a.jsonl")
    assert isinstance(file.questions, spool.SpooledSequence)
    assert [question.text for question in file.questions[1:3]] == ["1?", "2?"]
    assert file.questions[-1].text == "4?"
    assert len(read_question_set(MemorySource(data), "a.jsonl", max_bytes=9).questions) == 5
    with pytest.raises(InvalidFile, match="too_many_rows"):
        read_question_set(MemorySource(data), "a.jsonl", max_rows=4)
    topics = b"".join(b"q%d\twhat?\n" % n for n in range(5))  # as a whole
    with pytest.raises(InvalidFile, match="file_too_large"):
        read_question_set(MemorySource(topics), "topics.tsv", max_bytes=9)
    assert len(read_question_set(MemorySource(topics), "topics.tsv", qrels=b"q1 0 d1 1\n").questions) == 5
