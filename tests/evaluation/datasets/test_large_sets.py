"""Large question files: checked and imported by workers, hidden until complete, resumed, and purged if abandoned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.core.roles import Role
from evaluation.datasets import api, importing
from evaluation.datasets import views as datasets_views
from evaluation.datasets.importing import import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.models import AuditEvent, ImportBatch, ImportChunk, Job, Project, Question, QuestionSet, User
from evaluation.runs import large_uploads
from evaluation.runs.large_uploads import cancel_large_file, confirm_large_file, process_upload, store_large_questions
from evaluation.worker.jobs import enqueue_due
from review.answers.search import find_questions
from tests.evaluation.datasets.sources import as_json, as_lines, question, question_file
from tests.evaluation.rest.clients import Caller, evaluator, viewer
from tests.factories import make_project, make_user
from tests.jobs import record_wakeups, work_on_job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
COUNT = 25
OPTIONS = {"group_by": "", "map": "", "qrels": "", "encoding": ""}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    for module in (datasets_views, api):
        monkeypatch.setattr(module, "LARGE_BYTES", 10)
        monkeypatch.setattr(module, "CHUNK_BYTES", 100)
    monkeypatch.setattr(importing, "QUESTIONS_PER_TRANSACTION", 10)
    monkeypatch.setattr(large_uploads, "_REPORT_SECONDS", -1.0)  # look at every row


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def lead(project: Project) -> User:
    return make_user(Role.LEAD, project)


def rows(count: int = COUNT) -> list[dict[str, Any]]:
    return [question(number, source="atlas") for number in range(1, count + 1)]


def store(project: Project, by: User | None, data: bytes = b"", **options: Any) -> ImportBatch:
    data = data or as_lines(rows())
    size = max(100, len(data) // 20)
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    batch = store_large_questions(project, "capitals", "c.jsonl", pieces, by, options=OPTIONS, **options)
    batch.refresh_from_db()
    return batch


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_large_file_is_previewed_and_imported_by_workers(project: Project, lead: User) -> None:
    client = client_of(lead)
    form = {"project": project.pk, "file": SimpleUploadedFile("capitals.jsonl", as_lines(rows())), "name": ""}
    address = client.post(reverse("question-set-upload"), form).url  # type: ignore[attr-defined]
    batch = ImportBatch.objects.get()
    assert (batch.state, batch.rows, batch.name) == ("parsed", COUNT, "capitals")
    assert not Question.objects.exists()
    page = client.get(address).content.decode()
    for text in (
        "25 questions",
        "This is a new question set.",
        "What is the capital of country 1?",
        "Discard the file",
    ):
        assert text in page
    assert client.post(reverse("question-set-confirm", args=[batch.uuid])).url == address  # type: ignore[attr-defined]
    batch.refresh_from_db()
    question_set = QuestionSet.objects.get()
    assert (batch.state, batch.result_id) == ("confirmed", question_set.pk)
    assert (question_set.version, question_set.created_by, question_set.questions.count()) == (1, lead, COUNT)
    assert client.get(address).url == reverse("question-set", args=[question_set.pk])  # type: ignore[attr-defined]
    assert not ImportChunk.objects.exists()
    assert AuditEvent.objects.filter(verb="question_set.imported", detail__questions=COUNT).exists()


def test_large_import_equals_a_direct_import(project: Project, lead: User) -> None:
    confirm_large_file(store(project, lead), lead)
    question_set = QuestionSet.objects.get()
    direct = import_question_set(project, "capitals", question_file(*rows()), by=None)
    assert (direct.created, direct.question_set) == (False, question_set)
    assert direct.metadata_not_taken_over == ()
    assert list(question_set.questions.values_list("external_id", "position", "metadata")) == [
        (f"q{number + 1}", number, {"source": "atlas"}) for number in range(COUNT)
    ]
    second_batch = store(project, lead)
    page = client_of(lead).get(reverse("question-set-preview", args=[second_batch.uuid])).content.decode()
    assert "capitals v1 has the same content" in page
    confirm_large_file(second_batch, lead)
    second_batch.refresh_from_db()
    assert (second_batch.state, second_batch.result_id) == ("confirmed", question_set.pk)
    assert QuestionSet.all_objects.count() == 1
    next_batch = store(project, lead, as_lines(rows(COUNT + 1)))
    page = client_of(lead).get(reverse("question-set-preview", args=[next_batch.uuid])).content.decode()
    assert "This becomes the next version after capitals v1." in page
    confirm_large_file(next_batch, lead)
    newest = QuestionSet.objects.get(version=2)
    assert newest.predecessor == question_set


def test_rest_answers_202_with_the_address_of_the_upload(project: Project) -> None:
    caller = evaluator(project)
    response = caller.send("question-sets/?name=capitals", as_lines(rows()), "application/x-ndjson")
    assert response.status_code == 202
    upload = caller.client.get(response.headers["Location"]).json()
    question_set = QuestionSet.objects.get()
    assert (upload["status"], upload["question_set"], upload["rows"]) == ("confirmed", question_set.pk, COUNT)
    assert (upload["done"], upload["total"], upload["problems"]) == (COUNT, COUNT, [])
    assert [row["id"] for row in caller.get("uploads/").json()["results"]] == [upload["id"]]
    assert viewer(project).get("uploads/").json()["results"] == []
    assert Caller(None, project).client.get(response.headers["Location"]).status_code == 404


def test_rest_dry_run_of_a_large_file_imports_nothing(project: Project) -> None:
    caller = evaluator(project)
    response = caller.upload("question-sets/", as_json(rows()), "capitals.json", dry_run=True)
    upload = caller.client.get(response.headers["Location"]).json()
    assert (upload["status"], upload["name"], upload["rows"]) == ("parsed", "capitals", COUNT)
    assert not QuestionSet.all_objects.exists()


@pytest.mark.parametrize("confirmed", [False, True])
def test_refused_file_lists_its_problems_and_leaves_nothing(project: Project, lead: User, confirmed: bool) -> None:
    batch = store(project, lead, as_lines([*rows(), {"id": "x"}, question(1)]), confirmed=confirmed)
    assert batch.state == "refused"
    page = client_of(lead).get(reverse("question-set-preview", args=[batch.uuid])).content.decode()
    assert "c.jsonl was not imported" in page
    upload = evaluator(project).get(f"uploads/{batch.pk}/").json()
    assert [(problem["code"], problem["line"]) for problem in upload["problems"]] == [
        ("missing_among", 26),
        ("duplicate_id", 27),
    ]
    assert not ImportChunk.objects.exists()
    assert not QuestionSet.all_objects.exists()


@pytest.mark.parametrize("dry_run", [False, True])
def test_rest_refuses_unknown_columns_with_a_map(project: Project, dry_run: bool) -> None:
    caller, table = evaluator(project), b"Prompt to bot,Remark\nWhy?,So\n"
    response = caller.upload("question-sets/", table, "capitals.csv", dry_run=dry_run)
    upload = caller.client.get(response.headers["Location"]).json()
    (problem,) = upload["problems"]
    assert (upload["status"], problem["code"]) == ("refused", "columns_unknown")
    assert not ImportChunk.objects.exists()
    response = caller.upload("question-sets/", table, "capitals.csv", dry_run=dry_run, map=problem["params"]["map"])
    upload = caller.client.get(response.headers["Location"]).json()
    assert (upload["status"], upload["rows"]) == ("parsed" if dry_run else "confirmed", 1)


@pytest.mark.slow
def test_too_many_rows_are_refused(project: Project, lead: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_uploads, "_REPORT_SECONDS", 1.0)
    monkeypatch.setattr(large_uploads, "MAX_QUESTIONS", 8_000)
    lines = b"".join(b'{"question": "What is %d? %s"}\n' % (number, b"x" * 300) for number in range(8_001))
    batch = store(project, lead, lines)
    assert (batch.state, [problem["code"] for problem in batch.work.problems]) == ("refused", ["too_many_rows"])
    assert batch.work.problems[0]["params"] == {"limit": 8_000}


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    record_wakeups(monkeypatch)


@pytest.mark.usefixtures("no_workers")
def test_waiting_file_shows_progress_and_can_be_cancelled(project: Project, lead: User) -> None:
    batch = store(project, lead)
    client, address = client_of(lead), reverse("question-set-preview", args=[batch.uuid])
    assert "The file is being read and checked." in client.get(address).content.decode()
    ImportBatch.objects.update(state="importing", rows=COUNT)
    assert "They become visible once all are stored." in client.get(address).content.decode()
    client.post(reverse("question-set-cancel", args=[batch.uuid]))
    work_on_job(process_upload, batch.pk)
    batch.refresh_from_db()
    assert batch.state == "cancelled"
    assert "Nothing was imported." in client.get(address).content.decode()
    assert not ImportChunk.objects.exists()


def interrupt_after_first_batch(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    """Run an action after the first batch is stored."""
    original_store = importing.store_questions

    def store_questions(question_set: QuestionSet, file: QuestionFile) -> Iterator[int]:
        for stored in original_store(question_set, file):
            action()
            yield stored

    monkeypatch.setattr(importing, "store_questions", store_questions)
    monkeypatch.setattr(large_uploads, "store_questions", store_questions)


def assert_nothing_is_visible(project: Project, lead: User) -> None:
    assert not QuestionSet.objects.exists()
    assert not project.question_sets.exists()
    assert find_questions(lead, "capital", 10).rows == []
    caller = evaluator(project)
    assert caller.get("question-sets/").json()["results"] == []
    hidden = QuestionSet.all_objects.get().pk
    for path in (f"question-sets/{hidden}/", f"question-sets/{hidden}/questions/"):
        assert caller.get(path).status_code == 404
    client = client_of(lead)
    assert client.get(reverse("question-set", args=[hidden])).status_code == 404
    assert "capitals" not in client.get(reverse("question-set-list")).content.decode()
    admin = client_of(User.objects.create_superuser("root", password="a good password"))
    assert "What is the capital" not in admin.get("/admin/evaluation/question/").content.decode()


def test_questions_of_a_cancelled_import_are_hidden_until_purge_deletes_them(
    project: Project, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = store(project, lead)
    with monkeypatch.context() as patch:
        interrupt_after_first_batch(patch, lambda: cancel_large_file(batch, lead))
        confirm_large_file(batch, lead)
    assert Question.objects.count() == 10
    assert_nothing_is_visible(project, lead)
    call_command("purge")
    assert Question.objects.count() == 10
    with time_machine.travel(timezone.now() + timedelta(days=2)):
        call_command("purge")
    assert not Question.objects.exists()
    assert not QuestionSet.all_objects.exists()
    assert AuditEvent.objects.filter(verb="import.purged", detail__rows=10).exists()
    confirm_large_file(store(project, lead), lead)
    assert QuestionSet.objects.get().questions.count() == COUNT


def test_import_continues_after_a_worker_crash(project: Project, lead: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash() -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        interrupt_after_first_batch(patch, crash)
        batch = store(project, lead)
        with pytest.raises(MemoryError):
            confirm_large_file(batch, lead)
    batch.refresh_from_db()
    assert (batch.state, Question.objects.count()) == ("importing", 10)
    assert_nothing_is_visible(project, lead)
    with time_machine.travel(timezone.now() + timedelta(days=2)):
        call_command("purge")  # a worker will continue
    Job.objects.update(next_at=Now())
    enqueue_due()
    batch.refresh_from_db()
    assert batch.state == "confirmed"
    assert QuestionSet.objects.get().questions.count() == Question.objects.count() == COUNT
    assert list(QuestionSet.objects.get().questions.values_list("position", flat=True)) == list(range(COUNT))


def test_import_interrupted_for_days_starts_again(
    project: Project, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seals leave out rows of an import that was interrupted more than two days ago."""

    def crash() -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        interrupt_after_first_batch(patch, crash)
        batch = store(project, lead)
        with pytest.raises(MemoryError):
            confirm_large_file(batch, lead)
    with time_machine.travel(timezone.now() + timedelta(days=3)):
        later = import_question_set(project, "later", question_file(*rows(3)), by=lead).question_set
        audit.seal_rows()
        assert not audit.unsealed_rows()
        Job.objects.update(next_at=Now())
        enqueue_due()
        continued = QuestionSet.objects.exclude(pk=later.pk).get()
        assert (continued.questions.count(), Question.objects.count()) == (COUNT, 3 + 10 + COUNT)
        assert list(audit.flaws()) == []
        call_command("purge")
        assert Question.objects.count() == 3 + COUNT
        audit.seal_rows()
        assert list(audit.flaws()) == []


@pytest.mark.slow
def test_set_is_sealed_once_it_is_complete(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    unsealed = []
    store_questions = importing.store_questions

    def seal() -> None:
        if not QuestionSet.objects.filter(name="meanwhile").exists():
            with monkeypatch.context() as patch:
                patch.setattr(importing, "store_questions", store_questions)
                import_question_set(project, "meanwhile", question_file(*rows(7)), by=None)
        audit.seal_rows()
        unsealed.append(Question.objects.filter(question_set__name="before").count() - sealed_questions())

    import_question_set(project, "before", question_file(*rows(5)), by=None)
    interrupt_after_first_batch(monkeypatch, seal)
    import_question_set(project, "capitals", question_file(*rows()), by=None)
    # Neither the set nor what follows it is sealed before it is complete, while the one before it is.
    assert unsealed == [0] * 3
    audit.seal_rows()
    assert sealed_questions() == 5 + 7 + COUNT
    assert list(audit.flaws()) == []


def sealed_questions() -> int:
    (covered,) = (row.sealed for row in audit.coverage()[0] if row.table == "evaluation_question")
    return covered


def test_direct_import_stores_in_short_transactions(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    interrupt_after_first_batch(
        monkeypatch, lambda: seen.append((transaction.get_connection().in_atomic_block, Question.objects.count()))
    )
    assert import_question_set(project, "capitals", question_file(*rows()), by=None).created
    assert seen == [(False, 10), (False, 20), (False, 25)]


def test_finished_set_cannot_be_changed(project: Project) -> None:
    finished = import_question_set(project, "capitals", question_file(*rows()), by=None).question_set
    for change in ({"is_unfinished": True}, {"version": 7}):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            QuestionSet.objects.filter(pk=finished.pk).update(**change)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        QuestionSet.objects.filter(pk=finished.pk)._raw_delete("default")  # type: ignore[attr-defined]


def test_two_imports_of_equal_content_become_one_version(project: Project, lead: User) -> None:
    """The second one began before the first one was published."""
    first, second = (
        importing.store_question_set(project, "capitals", question_file(*rows()), by=lead) for _ in range(2)
    )
    assert importing.publish_question_set(first, question_file(*rows()), by=lead)
    imported = importing.publish_question_set(second, question_file(*rows()), by=lead)
    assert imported is not None
    assert (imported.created, imported.question_set) == (False, first)
    assert imported.note.code == "set_unchanged"
