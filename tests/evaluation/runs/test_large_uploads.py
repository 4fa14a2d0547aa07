"""Large answer files: read by workers from pieces in the database, previewed, stored, cancelled, taken up again."""

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
from tests.jobs import catch_rings, work

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 25


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    monkeypatch.setattr(runs_views, "LARGE_BYTES", 10)
    monkeypatch.setattr(runs_views, "CHUNK_BYTES", 100)
    monkeypatch.setattr(answer_files, "ANSWERS_PER_TRANSACTION", 10)
    monkeypatch.setattr(large_uploads, "_REPORT_SECONDS", -1.0)  # look at every batch


@pytest.fixture
def asked() -> QuestionSet:
    return make_question_set(make_project(), [question_spec(n, category="capitals") for n in range(1, COUNT + 1)])


@pytest.fixture
def lead(asked: QuestionSet) -> User:
    return make_user(Role.LEAD, asked.project)


def content(**more: Any) -> bytes:
    rows = [
        {"question_id": f"q{n}", "answer": f"It is city {n}.", "contexts": ["c"], **more} for n in range(1, COUNT + 1)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 100] for at in range(0, len(data), 100))


def kept(asked: QuestionSet, by: User, data: bytes = b"") -> ImportBatch:
    batch = store_large_file(asked, "rag", "a.jsonl", pieces(data or content()), by, map_text="")
    batch.refresh_from_db()
    return batch


@pytest.fixture
def nobody_works(monkeypatch: pytest.MonkeyPatch) -> None:
    catch_rings(monkeypatch)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_large_file_is_checked_previewed_and_stored_by_workers(asked: QuestionSet, lead: User) -> None:
    client, file = client_of(lead), SimpleUploadedFile("a.jsonl", content())
    sent = client.post(reverse("evaluation-new"), {"questions": asked.pk, "system": "rag", "file": file})
    batch = ImportBatch.objects.get()
    assert sent.url == reverse("answers-preview", args=[batch.uuid])  # type: ignore[attr-defined]
    assert (batch.state, batch.rows, batch.work.summary["passages"]) == ("parsed", COUNT, COUNT)
    assert not Answer.objects.exists()
    shown = client.get(sent.url).content.decode()  # type: ignore[attr-defined]
    assert "25 answers were understood." in shown
    assert "It is city 1." in shown
    client.post(reverse("answers-confirm", args=[batch.uuid]))
    batch.refresh_from_db()
    assert batch.state == "confirmed"
    run = Run.objects.get()
    assert batch.result_id == run.answer_set_id
    assert run.state in {Run.State.RUNNING, Run.State.COMPLETED}
    assert WorkUnit.objects.filter(run=run).count() == COUNT
    assert not ImportChunk.objects.exists()
    assert AnswerSet.objects.get().answers.count() == COUNT
    there = client.get(reverse("answers-preview", args=[batch.uuid]))
    assert there.url.endswith(f"?answers={run.answer_set_id}")  # type: ignore[attr-defined]


def test_it_becomes_what_the_same_file_becomes_in_one_go(asked: QuestionSet, lead: User) -> None:
    batch = kept(asked, lead)
    confirm_large_file(batch, lead)
    large = AnswerSet.objects.get()
    again = answer_files.import_answers(
        asked, "rag", answer_files.read_answers(content(), "a.jsonl"), data=content(), file_name="a.jsonl", by=None
    )
    assert not again.created
    assert again.run.answer_set == large


def test_a_wrong_file_is_refused_with_every_place_and_leaves_nothing(asked: QuestionSet, lead: User) -> None:
    batch = kept(asked, lead, content() + b'{"question_id": "nobody", "answer": "x"}\n{"question_id": "q1"')
    assert batch.state == "refused"
    page = client_of(lead).get(reverse("answers-preview", args=[batch.uuid])).content.decode()
    assert "a.jsonl was refused; nothing was imported" in page
    assert "27" in page
    assert not ImportChunk.objects.exists()
    assert not AnswerSet.all_objects.exists()


@pytest.mark.usefixtures("nobody_works")
def test_a_file_that_waits_shows_how_far_it_is_and_is_cancelled_for_good(asked: QuestionSet, lead: User) -> None:
    batch = kept(asked, lead)
    client, address = client_of(lead), reverse("answers-preview", args=[batch.uuid])
    assert "The file is being read and checked." in client.get(address).content.decode()
    client.post(reverse("answers-cancel", args=[batch.uuid]))
    work(process_upload, batch.pk)
    batch.refresh_from_db()
    assert batch.state == "cancelled"
    assert not ImportChunk.objects.exists()
    assert "Nothing of it counts." in client.get(address).content.decode()
    assert AuditEvent.objects.filter(verb="upload.cancelled").exists()


def broken_off(monkeypatch: pytest.MonkeyPatch, then: Any) -> None:
    """Have something happen behind the first batch that is stored."""
    real = CheckedAnswers.store

    def store(self: CheckedAnswers, answers: AnswerSet) -> Iterator[int]:
        for stored in real(self, answers):
            then()
            yield stored

    monkeypatch.setattr(CheckedAnswers, "store", store)


@pytest.mark.usefixtures("nobody_works")
def test_a_file_whose_workers_fail_for_good_says_so_and_can_be_cancelled(
    asked: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = kept(asked, lead)
    Job.objects.update(attempts=jobs.MOST_ATTEMPTS - 1)
    monkeypatch.setattr(large_uploads, "_check_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work(process_upload, batch.pk)
    client, address = client_of(lead), reverse("answers-preview", args=[batch.uuid])
    assert "It failed several times." in client.get(address).content.decode()
    client.post(reverse("answers-cancel", args=[batch.uuid]))
    assert "Nothing of it counts." in client.get(address).content.decode()


def test_what_was_stored_before_it_was_cancelled_never_counts(
    asked: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = kept(asked, lead)
    with monkeypatch.context() as patch:
        broken_off(patch, lambda: cancel_large_file(batch, lead))
        confirm_large_file(batch, lead)
    assert Answer.objects.count() == 10
    assert not AnswerSet.objects.exists()
    assert not Run.objects.exists()
    assert not access.visible(AnswerSet.objects.all(), lead).exists()
    with pytest.raises(DomainError, match="no_answers"):
        newest_answers(asked, "rag")
    second = kept(asked, lead)
    confirm_large_file(second, lead)
    assert AnswerSet.objects.get().answers.count() == COUNT


def test_a_worker_that_died_is_followed_by_one_that_stores_what_is_missing(
    asked: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die() -> None:
        raise MemoryError

    batch = kept(asked, lead)
    with monkeypatch.context() as patch:
        broken_off(patch, die)
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


def test_a_worker_whose_lease_was_lost_stops(asked: QuestionSet, lead: User, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = kept(asked, lead)
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_RENEW_SECONDS", -1.0)
        broken_off(patch, lambda: Job.objects.update(token="0" * 32))
        confirm_large_file(batch, lead)
    assert Answer.objects.count() == 10
    assert not AnswerSet.objects.exists()


def test_an_import_that_counts_cannot_be_cancelled(asked: QuestionSet, lead: User) -> None:
    batch = kept(asked, lead)
    confirm_large_file(batch, lead)
    assert not cancel_large_file(batch, lead)
    assert AnswerSet.objects.get().answers.count() == COUNT
