"""What is written in the forms of other tools comes back as far as both can hold it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import UnknownName
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.core.scales import Scale
from evaluation.formats.reading import read_answers, read_questions, read_ratings
from evaluation.formats.records import RATINGS, Record, form_names, write_records
from evaluation.formats.shaping import shipped_shapes
from tests.evaluation.formats.held import OPEN, QUESTION, RECORD, table

PAGE = Path(__file__).parents[3] / "docs" / "files.md"
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda text: text == text.strip() and text != ""
)


def test_the_table_of_the_docs_is_what_the_forms_hold() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "python -m tests.evaluation.formats.held"


def test_every_shape_that_is_read_whole_is_written_or_named_in_the_docs() -> None:
    only_read = {
        name for name, shape in shipped_shapes().items() if not shape.writes and (shape.questions or shape.answers)
    }
    assert only_read == {"inspect_log", "otlp", "promptfoo_csv", "promptfoo_results", "squad"}


@given(TEXTS, TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_any_text_survives_our_own_form(question: str, expected: str, answer: str, passages: list[str]) -> None:
    spec = QuestionSpec(id="q", category="", text=question, references=(expected,))
    said = AnswerSpec(answer, tuple(map(ContextSpec, passages)))
    text = "".join(write_records("concord", [Record(spec, {}, said)])).encode()
    assert read_questions(text, "a.jsonl").questions == (spec,)
    assert read_answers(text, "a.jsonl").answers[0].answer == said


@pytest.mark.parametrize(
    "form", [form for form in form_names() if form in shipped_shapes() and shipped_shapes()[form].questions]
)
def test_what_is_written_is_recognised_as_what_it_is(form: str) -> None:
    text = "".join(write_records(form, [RECORD, OPEN])).encode()
    assert read_questions(text, "a.json").shape == shipped_shapes()[form].title


def test_an_answer_that_failed_stays_failed_and_none_found_stays_none_found() -> None:
    failed = replace(RECORD, answer=AnswerSpec(""), error="timeout")
    nothing = replace(RECORD, question=OPEN.question, answer=AnswerSpec("a", contexts=()))
    text = "".join(write_records("concord", [failed, nothing])).encode()
    first, second = read_answers(text, "a.jsonl").answers
    assert (first.answered, first.error, first.answer.contexts) == (False, "timeout", None)
    assert second.answer.contexts == ()
    assert [one.answer.retrieved_ids for one in read_answers(_ragas(nothing), "a.jsonl").answers] == [None]


def _ragas(record: Record) -> bytes:
    return "".join(write_records("ragas", [record])).encode()


def test_ratings_and_scores_are_what_import_ratings_takes() -> None:
    rating = {"question_id": "q1", "sample": 0, "metric": "m", "rater": "human", "author": "kim", "value": 4.0}
    score = rating | {"rater": "judge", "author": "j@1", "value": None, "reason": "timeout"}
    text = "".join(write_records(RATINGS, [replace(RECORD, ratings=[rating], scores=[score])])).encode()
    read = read_ratings(text, "a.jsonl", scales={"m": Scale.parse("1..5")})
    assert [(one.origin.author, one.value, one.failure) for one in read.ratings] == [
        ("j@1", None, "timeout"),
        ("kim", 4.0, ""),
    ]


def test_trec_names_have_no_white_space() -> None:
    record = replace(RECORD, question=QUESTION.model_copy(update={"id": "q 1", "ground_truth_chunk_ids": ("d 1",)}))
    assert list(write_records("trec_qrels", [record])) == ["q_1 0 d_1 1\n"]


def test_a_form_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownName):
        write_records("nobody", [RECORD])


def test_a_document_is_one_and_lines_are_lines() -> None:
    assert json.loads("".join(write_records("ragchecker", [RECORD])))["results"][0]["query"] == QUESTION.text
    assert len(list(write_records("ragas", [RECORD, OPEN]))) == 2


def test_a_tool_that_holds_questions_only_gets_each_once() -> None:
    again = replace(RECORD, sample=1, first=False)
    assert len(list(write_records("inspect_samples", [RECORD, again]))) == 1
    assert len(list(write_records("ragas", [RECORD, again]))) == 2
