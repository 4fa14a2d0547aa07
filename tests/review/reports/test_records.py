"""``export_records``: an exported run can be imported as the same questions, answers and ratings."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evaluation.core.samples import questions_hash
from evaluation.datasets.importing import import_question_set
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.records import form_names
from evaluation.models import Run
from evaluation.runs.answer_files import import_answer_file
from review.models import Rating
from review.ratings.import_files import import_ratings
from tests.evaluation.formats.support import jsonl
from tests.examples import first_fast
from tests.factories import make_project

pytestmark = pytest.mark.django_db

QUESTIONS = jsonl(
    {"id": "q1", "question": "Why?", "expected_answer": ["so", "thus"], "category": "c", "note": "n"},
    {"id": "q2", "question": "How?", "expected_answer": "so", "category": "c"},
    {"id": "q3", "question": "When?", "category": "c"},
)
ANSWERS = jsonl(
    {"question_id": "q1", "answer": "so", "contexts": [{"id": "d", "text": "t", "score": 0.5}], "latency_seconds": 2},
    {"question_id": "q1", "answer": "thus", "sample": 1, "contexts": []},
    {"question_id": "q2", "error": "timeout"},
)
RATINGS = jsonl(
    {"question_id": "q1", "metric": "avg_correctness", "rater": "human", "author": "kim", "value": 0.75},
)


@pytest.fixture
def run() -> Run:
    question_set = import_question_set(
        make_project(), "mine", read_questions(QUESTIONS, "a.jsonl"), by=None
    ).question_set
    return import_answer_file(question_set, "rag", ANSWERS, "a.jsonl", by=None)


def export(run: Run, path: Path, form: str = "concord") -> bytes:
    call_command("export_records", str(run.pk), "--output", str(path), "--form", form, stdout=io.StringIO())
    return path.read_bytes()


def test_exported_questions_and_answers_equal_the_imported(run: Run, tmp_path: Path) -> None:
    data = export(run, tmp_path / "run.jsonl")
    questions = read_questions(data, "run.jsonl")
    expected_questions = [
        record for record in read_questions(QUESTIONS, "a.jsonl").questions if record.id != "q3"
    ]  # nobody answered it
    assert questions_hash(questions.questions) == questions_hash(expected_questions)
    assert questions.metadata["q1"] == {"note": "n"}
    exported_answers, original = (
        [
            (record.question_id, record.sample, record.answer, record.answered, record.error)
            for record in read_answers(text, "a").answers
        ]
        for text in (data, ANSWERS)
    )
    assert exported_answers == original


def test_exported_ratings_equal_the_imported(run: Run, tmp_path: Path) -> None:
    import_ratings(run, RATINGS, "r.jsonl", ["avg_correctness=0..1:real"])
    data = export(run, tmp_path / "ratings.jsonl", "ratings")
    (row,) = map(json.loads, data.splitlines())
    assert (row["author"], row["value"], row["blind"], row["phase"]) == ("kim", 0.75, True, "initial")
    repeated = import_ratings(run, data, "again.jsonl", ["avg_correctness=0..1:real"])
    assert (repeated.human, repeated.unchanged) == (0, 1)
    assert Rating.objects.count() == 1


@pytest.mark.parametrize("form", first_fast(form_names(), 8))
def test_every_form_can_be_written(run: Run, tmp_path: Path, form: str) -> None:
    assert isinstance(export(run, tmp_path / "f", form), bytes)


def test_unknown_form_or_run_is_a_usage_error(tmp_path: Path) -> None:
    for arguments in (["1", "--output", str(tmp_path / "f")], ["1", "--output", "f", "--form", "nobody"]):
        with pytest.raises(CommandError):
            call_command("export_records", *arguments)
    assert not (tmp_path / "f").exists()
