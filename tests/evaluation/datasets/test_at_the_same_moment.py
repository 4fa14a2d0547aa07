"""Concurrent imports: version numbers have no gaps, and duplicate confirmations import once."""

from __future__ import annotations

import pytest

from evaluation.datasets.importing import import_question_set
from evaluation.datasets.uploads import QUESTIONS, confirm_upload, store_upload
from evaluation.formats.reading import read_answers
from evaluation.models import Answer, AnswerSet, ImportBatch, QuestionSet, Run, SystemVersion
from evaluation.runs.answer_files import import_answers
from tests.concurrency import WAITS, run_concurrently
from tests.evaluation.datasets.sources import as_json, as_lines, question, question_file
from tests.factories import make_project, make_question_set

pytestmark = [WAITS, pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_concurrent_contents_become_consecutive_versions() -> None:
    project = make_project()
    files = [question_file(*(question(n) for n in range(count))) for count in (1, 2, 3, 4)]
    imports = run_concurrently(*[lambda f=f: import_question_set(project, "capitals", f, by=None) for f in files])
    assert sorted(imported.question_set.version for imported in imports) == [1, 2, 3, 4]
    for question_set in QuestionSet.objects.filter(version__gt=1):
        assert question_set.predecessor is not None
        assert question_set.predecessor.version == question_set.version - 1


def test_concurrent_equal_imports_become_one_version() -> None:
    project, file = make_project(), question_file(question(1))
    imports = run_concurrently(*[lambda: import_question_set(project, "capitals", file, by=None)] * 4)
    assert sorted(imported.created for imported in imports) == [False, False, False, True]
    assert QuestionSet.objects.count() == 1


def test_concurrent_confirmations_import_once() -> None:
    batch = store_upload(make_project(), QUESTIONS, "", "capitals.json", as_json([question(1)]), {}, None)
    imports = run_concurrently(*[lambda: confirm_upload(ImportBatch.objects.get(pk=batch.pk), None)] * 4)
    assert sorted(imported.created for imported in imports) == [False, False, False, True]
    assert len({imported.question_set.pk for imported in imports}) == 1


def test_concurrent_equal_answers_become_one_answer_set_with_one_run() -> None:
    question_set = make_question_set(specs=3)
    data = as_lines([{"question_id": f"q{n}", "answer": "x"} for n in (1, 2, 3)])
    file = read_answers(data, "a.jsonl")
    imports = run_concurrently(
        *[lambda: import_answers(question_set, "vector", file, data=data, file_name="a.jsonl", by=None)] * 4
    )
    assert sorted(imported.created for imported in imports) == [False, False, False, True]
    assert (AnswerSet.objects.count(), Run.objects.count()) == (1, 1)
    assert Answer.objects.filter(answer_set=AnswerSet.objects.get()).count() == 3  # others' rows are never seen
    assert SystemVersion.objects.count() == 1
