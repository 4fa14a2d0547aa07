"""Numbers kept as spelled, repeated problems merged per column, and suggested columns for missing fields."""

import json
from typing import Any

import pytest
from openpyxl import Workbook

from evaluation.formats.columns import guess_columns
from evaluation.formats.reading import read_answers, read_questions
from evaluation.messages.explanations import explain
from tests.evaluation.formats.support import expect_problems, jsonl, xlsx


@pytest.mark.parametrize(
    ("spelled", "text"),
    [("7", "7"), ("-3", "-3"), ("0.960", "0.960"), ("1e3", "1e3"), ("98765432109876543210", "98765432109876543210")],
)
def test_json_numbers_are_ids_and_references_as_spelled(spelled: str, text: str) -> None:
    row = f'{{"id": {spelled}, "question": "a?", "expected_answer": {spelled}, "tags": [{spelled}]}}'
    (question,) = read_questions(row.encode(), "a.jsonl").questions
    assert (question.id, question.references, question.tags) == (text, (text,), (text,))


def _workbook(value: Any, number_format: str) -> bytes:
    import io

    book = Workbook()
    book.active.append(["id", "question"])
    book.active.append([value, "a?"])
    book.active["A2"].number_format = number_format
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("number_format", "text"), [("General", "42"), ("0", "42"), ("#,##0", "42"), ("00000", "00042")]
)
def test_workbook_integer_is_an_id_as_displayed(number_format: str, text: str) -> None:
    assert read_questions(_workbook(42, number_format), "a.xlsx").questions[0].id == text


@pytest.mark.parametrize(
    ("value", "number_format"), [(42, "0%"), (42, "0.00"), (0.5, "General"), (10**16, "0"), (True, "General")]
)
def test_workbook_number_displayed_differently_is_refused(value: Any, number_format: str) -> None:
    (problem,) = expect_problems(read_questions, _workbook(value, number_format), "a.xlsx")
    assert (problem.code, problem.field) == ("format_as_text", "id")


def test_equal_problems_of_a_column_are_merged_with_a_count() -> None:
    rows = [["id", "question", "expected_answer"], *([f"q{n}", f"a{n}?", 0.5] for n in range(60))]
    (problem,) = expect_problems(read_questions, xlsx(*rows), "a.xlsx")
    assert (problem.code, problem.line, len(problem.more_lines)) == ("format_as_text", 2, 59)
    assert explain(problem).endswith("Also in 59 other rows: 3, 4, 5, 6, 7, ….")


def test_problems_with_separate_fixes_are_not_merged() -> None:
    rows = [{"id": id_, "question": f"{n}?"} for n, id_ in enumerate(("a", "a", "b", "b"))]
    assert [
        (problem.line, problem.more_lines) for problem in expect_problems(read_questions, jsonl(*rows), "a.jsonl")
    ] == [
        (2, ()),
        (4, ()),
    ]


@pytest.mark.parametrize(
    ("row", "likely"),
    [
        ({"user_query": "a?", "user_query_id": "7", "gold_answer": "b"}, "user_query"),
        ({"prompt_text": "a?", "prompt_tokens": 5}, "prompt_text"),
        ({"질문내용": "a?", "질문번호": "3"}, "질문내용"),
    ],
)
def test_missing_question_column_is_guessed(row: dict[str, Any], likely: str) -> None:
    (problem,) = expect_problems(read_questions, jsonl(row, row), "a.jsonl")
    assert (problem.code, problem.params["columns"]) == ("columns_unknown", ", ".join(row))
    assert json.loads(problem.params["map"])["questions"]["question"] == [json.dumps(likely, ensure_ascii=False)]


@pytest.mark.parametrize(
    ("row", "likely"),
    [
        ({"bot_reply": "b", "reply_type": "text"}, "bot_reply"),
        ({"rag_response_text": "b", "response_time": "3"}, "rag_response_text"),
        ({"생성답변": "b"}, "생성답변"),
    ],
)
def test_missing_answer_column_is_guessed(row: dict[str, Any], likely: str) -> None:
    (problem,) = expect_problems(read_answers, jsonl({"question_id": "a", **row}), "a.jsonl")
    assert problem.code == "columns_unknown"
    assert json.loads(problem.params["map"])["answers"]["answer"] == [json.dumps(likely, ensure_ascii=False)]


@pytest.mark.parametrize("name", ["model_answer", "output_content", "prediction"])
def test_answer_names_of_other_tools_are_read(name: str) -> None:
    (row,) = read_answers(jsonl({"question_id": "a", name: "b"}), "a.jsonl").answers
    assert row.answer.text == "b"


def test_wrappers_ids_and_alternative_answers_of_other_tools_are_read() -> None:
    data = b'{"oracle": [{"_id": "x", "input_content": "a?", "expected_documents": ["d.md"]}]}'
    file = read_questions(data, "a.json")
    assert [(q.id, q.category, q.text) for q in file.questions] == [("x", "", "a?")]
    assert [r.code for r in file.remarks] == ["category_empty", "metadata_kept", "passages_not_found"]
    file = read_questions(jsonl({"query": "a?", "answer": "one", "alt_ans": ["1", "one"]}), "a.jsonl")
    assert file.questions[0].references == ("one", "1")
    assert "references_further" in [remark.code for remark in file.remarks]


def test_conversation_in_one_text_is_split_into_turns() -> None:
    row = {"question": "a?", "history": "user: Hello\nassistant: Hi,\nwhat is it?\nuser: A thing"}
    (question,) = read_questions(jsonl(row), "a.jsonl").questions
    assert question.history == ("user: Hello", "assistant: Hi,\nwhat is it?", "user: A thing")
    (plain,) = read_questions(jsonl({**row, "history": "First line\nuser: no turn"}), "a.jsonl").questions
    assert plain.history == ("First line\nuser: no turn",)


@pytest.mark.parametrize("first", ["sep=;\r\n", "SEP=;\n", '"sep=;"\n'])
def test_separator_line_is_not_a_row(first: str) -> None:
    file = read_questions((first + "id;question\nq1;Where, and when?\n").encode(), "a.csv")
    assert [(q.id, q.text) for q in file.questions] == [("q1", "Where, and when?")]
    (problem,) = expect_problems(read_questions, first + "id;question\nq1\n", "a.csv")
    assert (problem.code, problem.line) == ("ragged_row", 2)


@pytest.mark.parametrize(
    "rows",
    [
        [["Read this before you start"]],
        [["Status", "Owner"], ["draft", "kim"]],
        [["id", "question"], ["a", "=1+1"]],
        [["id", "id"], ["a", "b"]],
    ],
)
def test_refused_workbook_names_the_sheet_that_was_read(rows: list[list[str]]) -> None:
    *_, last = expect_problems(read_questions, xlsx(*rows, further=["questions", "old"]), "a.xlsx")
    assert explain(last).endswith(
        "Only the first sheet, “Sheet”, is read. Not read: questions, old. Move the sheet with the rows to the front."
    )
    assert "sheets_not_read" not in [problem.code for problem in expect_problems(read_questions, xlsx(*rows), "a.xlsx")]


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "null", "<NA>", "NaT"])
def test_words_for_missing_values_are_kept_and_remarked_in_tables(word: str) -> None:
    answers = read_answers(f"question_id,answer\na,{word}\nb,none of them\nc,{word}\n".encode(), "a.csv")
    assert [row.answer.text for row in answers.answers] == [word, "none of them", word]
    assert [(row.code, row.params) for row in answers.remarks] == [
        ("missing_words_kept", {"names": "answer", "rows": 2})
    ]
    questions = read_questions(f"id,category,question\na,x,{word}\n".encode(), "a.csv")
    assert [row.code for row in questions.remarks] == ["missing_words_kept"]


def test_words_for_missing_values_are_plain_text_in_json() -> None:
    assert not read_answers(jsonl({"question_id": "a", "answer": "None"}), "a.jsonl").remarks


@pytest.mark.parametrize(
    ("kind", "headings", "fields"),
    [
        (
            "answers",
            ["PROMPT", "bot reply", "ctx_1", "Ctx. 2", "Passage-3", "source 4"],
            "question answer" + 4 * " contexts",
        ),
        ("answers", ["질문", "답변", "문맥1", "문맥2", "정답"], "question answer contexts contexts metadata"),
        (
            "answers",
            ["Q no", "Model output", "chunk ids", "Elapsed"],
            "question_id answer retrieved_context_ids latency_seconds",
        ),
        ("questions", ["번호", "질문", "정답", "키워드"], "id question expected_answer expected_keywords"),
        (
            "questions",
            ["User Question", "Ideal  response", "Key terms", "Source Doc"],
            "question expected_answer expected_keywords metadata",
        ),
    ],
)
def test_fields_are_guessed_from_odd_headings(kind: str, headings: list[str], fields: str) -> None:
    assert [field for _heading, field in guess_columns(kind, headings)] == fields.split()


def test_empty_column_without_a_name_is_left_out() -> None:
    file = read_questions(b"question;;id;\na?;;1;\n;;;\n", "a.csv")
    assert [(q.id, q.text) for q in file.questions] == [("1", "a?")]
    (problem,) = expect_problems(read_questions, b"question;;id\na?;x;1\nb?;y;2\n", "a.csv")
    assert (problem.code, problem.params) == ("header_empty", {"column": 2})
