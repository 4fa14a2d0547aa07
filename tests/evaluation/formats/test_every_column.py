"""Every reader gets the columns of every other format. Each column and row is either read and reported, or refused with
a problem that names its field, row or shape."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from evaluation.core.errors import InvalidFile
from evaluation.core.scales import Scale
from evaluation.formats import answer_rows, question_rows
from evaluation.formats.export import csv_chunks
from evaluation.formats.reading import read_answers, read_label_studio, read_questions, read_ratings
from evaluation.formats.shaping import shipped_shapes
from evaluation.formats.tree import PARAMETERS

IDENTIFYING_COLUMNS = {column for shape in shipped_shapes().values() for names in shape.known_by for column in names}
MAPPED_COLUMNS = {
    expression.partition(".")[0]
    for shape in shipped_shapes().values()
    for part in (shape.questions, shape.answers)
    if part
    for _, expressions in part.fields()
    for expression in expressions
    if expression.replace(".", "").replace("_", "").isalnum()
}
OWN_COLUMNS = {
    *question_rows.ID,
    *question_rows.QUESTION_TEXT,
    *question_rows.REFERENCE,
    *question_rows.PASSAGES,
    *answer_rows.QUESTION_ID,
    *answer_rows.ANSWER,
    *answer_rows.CONTEXTS,
    *answer_rows.RETRIEVED_IDS,
    *("metric", "value", "author", "rater", "category", "error", "expectedOutput", "retrievalContext", "gold_words"),
}
COLUMNS = sorted(IDENTIFYING_COLUMNS | MAPPED_COLUMNS | OWN_COLUMNS)
TEXTS = ["q", "a|b", "", "['a', 'b']", "0"]
LISTS = [["a"], [], ["a", "b"], [["a"], ["b"]], [{"role": "user", "content": "q"}], [{"text": "t", "id": "k"}]]
VALUES = st.sampled_from([*TEXTS, *LISTS, None, {"question": "q", "answer": "a"}, {"text": ["a"]}, 1, 0.5, True, {}])
SHAPES = [sorted({*names}) for shape in shipped_shapes().values() for names in shape.known_by]
BASES = st.sampled_from([*SHAPES, ["question", "answer"], ["question", "expected_answer"], ["question_id", "output"]])


@st.composite
def files(draw: st.DrawFn) -> tuple[list[dict[str, Any]], bytes, str]:
    """Rows with the columns of one shape and some of others, as JSON or CSV."""
    columns = [*draw(BASES), *draw(st.lists(st.sampled_from(COLUMNS), max_size=4))]
    columns = list(dict.fromkeys(columns))
    rows = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(columns, VALUES)), min_size=1, max_size=3))
    if draw(st.booleans()):
        return rows, json.dumps(rows).encode(), "a.json"
    cells = [[_cell(row[name]) for name in columns] for row in rows]
    written_rows = [row for row, texts in zip(rows, cells, strict=True) if any(texts)]  # blank rows of a table are none
    return written_rows, b"".join(csv_chunks(columns, cells)), "a.csv"


def _cell(value: Any) -> str | None:
    return value if isinstance(value, str) or value is None else repr(value)


def assert_problems_are_specific(refusal: InvalidFile) -> None:
    for problem in refusal.problems:
        assert problem.code in PARAMETERS
        assert problem.line or problem.field or problem.params, problem.code


@example(([{"assert": "q", "vars": {"question": "q"}}], b"assert,vars\r\nq,\"{'question': 'q'}\"\r\n", "a.csv"))
@given(files())
def test_question_columns_and_rows_are_all_accounted_for(file: tuple[list[dict[str, Any]], bytes, str]) -> None:
    rows, data, name = file
    try:
        parsed = read_questions(data, name)
    except InvalidFile as refusal:
        assert_problems_are_specific(refusal)
        return
    left_out = sum(remark.params["rows"] for remark in parsed.remarks if remark.code == "rows_left_out")
    assert len(parsed.questions) + left_out == len(rows)
    assert_columns_reported(rows, parsed.columns)
    unmatched = {remark.code: remark.params["names"] for remark in parsed.remarks if remark.code.endswith("_not_found")}
    if not any(question.references for question in parsed.questions) and "gold_words" in parsed.metadata_keys:
        assert "gold_words" in unmatched["reference_not_found"]


@given(files())
def test_answer_columns_and_rows_are_all_accounted_for(file: tuple[list[dict[str, Any]], bytes, str]) -> None:
    rows, data, name = file
    try:
        parsed = read_answers(data, name)
    except InvalidFile as refusal:
        assert_problems_are_specific(refusal)
        return
    unanswered = sum(row.params["rows"] for row in parsed.remarks if row.code == "no_answer_yet")
    assert len(parsed.answers) + unanswered == len(rows)
    assert_columns_reported(rows, parsed.columns)
    for row in parsed.answers:  # a text that holds the brackets of a list is no passage
        assert not any(context.text.startswith("['") for context in row.answer.contexts or ())
        assert not any(id_.startswith("[") for id_ in row.answer.retrieved_ids or ())


@given(files())
def test_rating_and_annotation_rows_are_all_accounted_for(file: tuple[list[dict[str, Any]], bytes, str]) -> None:
    rows, data, name = file
    scales = {"m": Scale.parse("1..5")}
    for reader in (
        lambda: read_ratings(data, name, scales=scales),
        lambda: read_label_studio(data, name, scales=scales, annotators={}),
    ):
        try:
            parsed = reader()
        except InvalidFile as refusal:
            assert_problems_are_specific(refusal)
        else:
            assert len(parsed.ratings) + len(parsed.pairs) == len(rows)


def assert_columns_reported(rows: list[dict[str, Any]], columns: tuple[tuple[str, str], ...]) -> None:
    """Every column with values is reported as read or left out."""
    reported = {column.partition(".")[0] for column, _ in columns}
    nonempty = {name for row in rows for name, value in row.items() if value not in (None, "", [], {})}
    assert nonempty - reported - {"metadata"} == set()
