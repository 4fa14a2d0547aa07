"""Records in formats of other tools round-trip as far as both formats allow."""

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
from tests.evaluation.formats.held import QUESTION, RECORD, UNANSWERED, format_table

PAGE = Path(__file__).parents[3] / "docs" / "files.md"
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda text: text == text.strip() and text != ""
)


def test_docs_table_equals_the_preserved_fields() -> None:
    assert format_table() in PAGE.read_text(encoding="utf-8"), "python -m tests.evaluation.formats.held"


def test_complete_shapes_are_writable_or_listed_as_read_only() -> None:
    read_only = {
        name for name, shape in shipped_shapes().items() if not shape.writes and (shape.questions or shape.answers)
    }
    assert read_only == {"inspect_log", "otlp", "promptfoo_csv", "promptfoo_results", "squad"}


@given(TEXTS, TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_any_text_round_trips_in_the_own_format(question: str, expected: str, answer: str, passages: list[str]) -> None:
    spec = QuestionSpec(id="q", category="", text=question, references=(expected,))
    answer_spec = AnswerSpec(answer, tuple(map(ContextSpec, passages)))
    text = "".join(write_records("concord", [Record(spec, {}, answer_spec)])).encode()
    assert read_questions(text, "a.jsonl").questions == (spec,)
    assert read_answers(text, "a.jsonl").answers[0].answer == answer_spec


@pytest.mark.parametrize(
    "form", [form for form in form_names() if form in shipped_shapes() and shipped_shapes()[form].questions]
)
def test_written_format_is_recognised(form: str) -> None:
    text = "".join(write_records(form, [RECORD, UNANSWERED])).encode()
    assert read_questions(text, "a.json").shape == shipped_shapes()[form].title


def test_failed_answers_and_empty_retrieval_round_trip() -> None:
    failed = replace(RECORD, answer=AnswerSpec(""), error="timeout")
    without_passages = replace(RECORD, question=UNANSWERED.question, answer=AnswerSpec("a", contexts=()))
    text = "".join(write_records("concord", [failed, without_passages])).encode()
    first, second = read_answers(text, "a.jsonl").answers
    assert (first.answered, first.error, first.answer.contexts) == (False, "timeout", None)
    assert second.answer.contexts == ()
    assert [row.answer.retrieved_ids for row in read_answers(_ragas(without_passages), "a.jsonl").answers] == [None]


def _ragas(record: Record) -> bytes:
    return "".join(write_records("ragas", [record])).encode()


def test_exported_ratings_and_scores_can_be_imported() -> None:
    rating = {"question_id": "q1", "sample": 0, "metric": "m", "rater": "human", "author": "kim", "value": 4.0}
    score = rating | {"rater": "judge", "author": "j@1", "value": None, "reason": "timeout"}
    text = "".join(write_records(RATINGS, [replace(RECORD, ratings=[rating], scores=[score])])).encode()
    file = read_ratings(text, "a.jsonl", scales={"m": Scale.parse("1..5")})
    assert [(rating_row.origin.author, rating_row.value, rating_row.failure) for rating_row in file.ratings] == [
        ("j@1", None, "timeout"),
        ("kim", 4.0, ""),
    ]


def test_trec_ids_contain_no_white_space() -> None:
    record = replace(RECORD, question=QUESTION.model_copy(update={"id": "q 1", "ground_truth_chunk_ids": ("d 1",)}))
    assert list(write_records("trec_qrels", [record])) == ["q_1 0 d_1 1\n"]


def test_unknown_format_is_refused() -> None:
    with pytest.raises(UnknownName):
        write_records("nobody", [RECORD])


def test_document_formats_write_one_document_and_others_lines() -> None:
    assert json.loads("".join(write_records("ragchecker", [RECORD])))["results"][0]["query"] == QUESTION.text
    assert len(list(write_records("ragas", [RECORD, UNANSWERED]))) == 2


def test_question_formats_write_each_question_once() -> None:
    second_sample = replace(RECORD, sample=1, first=False)
    assert len(list(write_records("inspect_samples", [RECORD, second_sample]))) == 1
    assert len(list(write_records("ragas", [RECORD, second_sample]))) == 2
