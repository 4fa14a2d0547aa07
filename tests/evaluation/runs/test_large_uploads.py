"""Large answer files: stored in chunks, checked by workers, previewed, imported, cancelled and resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from evaluation.accounts import access
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import (
    Answer,
    AnswerSet,
    AuditEvent,
    ImportBatch,
    ImportChunk,
    Job,
    QuestionSet,
    Run,
    User,
    WorkUnit,
)
from evaluation.runs import answer_files, large_uploads
from evaluation.runs import views as runs_views
from evaluation.runs.answer_files import CheckedAnswers
from evaluation.runs.large_uploads import cancel_large_file, confirm_large_file, process_upload, store_large_file
from evaluation.runs.selectors import newest_answers
from evaluation.worker import jobs
from evaluation.worker.jobs import enqueue_due
from tests.factories import make_project, make_question_set, make_user, question_spec
from tests.jobs import record_wakeups, work_on_job

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 25


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    monkeypatch.setattr(runs_views, "LARGE_BYTES", 10)
    monkeypatch.setattr(runs_views, "CHUNK_BYTES", 100)
    monkeypatch.setattr(answer_files, "ANSWERS_PER_TRANSACTION", 10)
    monkeypatch.setattr(large_uploads, "_REPORT_SECONDS", -1.0)  # look at every batch


@pytest.fixture
def question_set() -> QuestionSet:
    return make_question_set(make_project(), [question_spec(n, category="capitals") for n in range(1, COUNT + 1)])


@pytest.fixture
def lead(question_set: QuestionSet) -> User:
    return make_user(Role.LEAD, question_set.project)


def content(**fields: Any) -> bytes:
    rows = [
        {"question_id": f"q{n}", "answer": f"It is city {n}.", "contexts": ["c"], **fields} for n in range(1, COUNT + 1)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def chunks(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 100] for at in range(0, len(data), 100))


def store_upload(question_set: QuestionSet, by: User, data: bytes = b"") -> ImportBatch:
    batch = store_large_file(question_set, "rag", "a.jsonl", chunks(data or content()), by, map_text="")
    batch.refresh_from_db()
    return batch


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    record_wakeups(monkeypatch)


def login_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_large_file_is_checked_previewed_and_stored_by_workers(question_set: QuestionSet, lead: User) -> None:
    client, file = login_client(lead), SimpleUploadedFile("a.jsonl", content())
    response = client.post(reverse("evaluation-new"), {"questions": question_set.pk, "system": "rag", "file": file})
    batch = ImportBatch.objects.get()
    assert response.url == reverse("answers-preview", args=[batch.uuid])  # type: ignore[attr-defined]
    assert (batch.state, batch.rows, batch.work.summary["passages"]) == ("parsed", COUNT, COUNT)
    assert not Answer.objects.exists()
    preview = client.get(response.url).content.decode()  # type: ignore[attr-defined]
    assert "25 answers were read." in preview
    assert "It is city 1." in preview
    client.post(reverse("answers-confirm", args=[batch.uuid]))
    batch.refresh_from_db()
    assert batch.state == "confirmed"
    run = Run.objects.get()
    assert batch.result_id == run.answer_set_id
    assert run.state in {Run.State.RUNNING, Run.State.COMPLETED}
    assert WorkUnit.objects.filter(run=run).count() == COUNT
    assert not ImportChunk.objects.exists()
    assert AnswerSet.objects.get().answers.count() == COUNT
    confirmed = client.get(reverse("answers-preview", args=[batch.uuid]))
    assert confirmed.url.endswith(f"?answers={run.answer_set_id}")  # type: ignore[attr-defined]


def test_large_upload_equals_a_direct_import(question_set: QuestionSet, lead: User) -> None:
    batch = store_upload(question_set, lead)
    confirm_large_file(batch, lead)
    answer_set = AnswerSet.objects.get()
    direct_import = answer_files.import_answers(
        question_set,
        "rag",
        answer_files.read_answers(content(), "a.jsonl"),
        data=content(),
        file_name="a.jsonl",
        by=None,
    )
    assert not direct_import.created
    assert direct_import.run.answer_set == answer_set


def test_invalid_file_is_refused_with_lines_and_leaves_nothing(question_set: QuestionSet, lead: User) -> None:
    batch = store_upload(
        question_set, lead, content() + b'{"question_id": "nobody", "answer": "x"}\n{"question_id": "q1"'
    )
    assert batch.state == "refused"
    page = login_client(lead).get(reverse("answers-preview", args=[batch.uuid])).content.decode()
    assert "a.jsonl was not imported" in page
    assert "27" in page
    assert not ImportChunk.objects.exists()
    assert not AnswerSet.all_objects.exists()


@pytest.mark.usefixtures("no_workers")
def test_waiting_file_shows_progress_and_can_be_cancelled(question_set: QuestionSet, lead: User) -> None:
    batch = store_upload(question_set, lead)
    client, address = login_client(lead), reverse("answers-preview", args=[batch.uuid])
    assert "The file is being read and checked." in client.get(address).content.decode()
    client.post(reverse("answers-cancel", args=[batch.uuid]))
    work_on_job(process_upload, batch.pk)
    batch.refresh_from_db()
    assert batch.state == "cancelled"
    assert not ImportChunk.objects.exists()
    assert "Nothing was imported." in client.get(address).content.decode()
    assert AuditEvent.objects.filter(verb="upload.cancelled").exists()


def interrupt_after_first_batch(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Run an action after the first batch is stored."""
    original_store = CheckedAnswers.store

    def store(self: CheckedAnswers, answers: AnswerSet) -> Iterator[int]:
        for stored in original_store(self, answers):
            action()
            yield stored

    monkeypatch.setattr(CheckedAnswers, "store", store)


@pytest.mark.usefixtures("no_workers")
def test_failed_upload_is_reported_and_can_be_cancelled(
    question_set: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = store_upload(question_set, lead)
    Job.objects.update(attempts=jobs.MOST_ATTEMPTS - 1)
    monkeypatch.setattr(large_uploads, "_check_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work_on_job(process_upload, batch.pk)
    client, address = login_client(lead), reverse("answers-preview", args=[batch.uuid])
    assert "It failed several times." in client.get(address).content.decode()
    client.post(reverse("answers-cancel", args=[batch.uuid]))
    assert "Nothing was imported." in client.get(address).content.decode()


def test_answers_stored_before_cancellation_never_count(
    question_set: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = store_upload(question_set, lead)
    with monkeypatch.context() as patch:
        interrupt_after_first_batch(patch, lambda: cancel_large_file(batch, lead))
        confirm_large_file(batch, lead)
    assert Answer.objects.count() == 10
    assert not AnswerSet.objects.exists()
    assert not Run.objects.exists()
    assert not access.visible(AnswerSet.objects.all(), lead).exists()
    with pytest.raises(DomainError, match="no_answers"):
        newest_answers(question_set, "rag")
    second_batch = store_upload(question_set, lead)
    confirm_large_file(second_batch, lead)
    assert AnswerSet.objects.get().answers.count() == COUNT


def test_import_continues_after_a_worker_crash(
    question_set: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash() -> None:
        raise MemoryError

    batch = store_upload(question_set, lead)
    with monkeypatch.context() as patch:
        interrupt_after_first_batch(patch, crash)
        with pytest.raises(MemoryError):
            confirm_large_file(batch, lead)
    batch.refresh_from_db()
    assert (batch.state, Answer.objects.count()) == ("importing", 10)
    enqueue_due()
    assert Answer.objects.count() == 10  # it is retried after a pause
    Job.objects.update(next_at=Now())
    enqueue_due()
    batch.refresh_from_db()
    assert batch.state == "confirmed"
    assert AnswerSet.objects.get().answers.count() == Answer.objects.count() == COUNT


def test_worker_stops_when_its_lease_is_lost(
    question_set: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = store_upload(question_set, lead)
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_RENEW_SECONDS", -1.0)
        interrupt_after_first_batch(patch, lambda: Job.objects.update(token="0" * 32))
        confirm_large_file(batch, lead)
    assert Answer.objects.count() == 10
    assert not AnswerSet.objects.exists()


def test_confirmed_import_cannot_be_cancelled(question_set: QuestionSet, lead: User) -> None:
    batch = store_upload(question_set, lead)
    confirm_large_file(batch, lead)
    assert not cancel_large_file(batch, lead)
    assert AnswerSet.objects.get().answers.count() == COUNT
