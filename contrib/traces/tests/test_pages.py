"""Traces in the browser: a file by OpenInference is sampled, masked, previewed and becomes answers."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from contrib.traces.forms import PERSONAL_TITLES
from contrib.traces.importing import pending_traces, store_received
from contrib.traces.otlp import PERSONAL
from contrib.traces.tests.test_importing import question_span, request
from contrib.traces.tests.test_otlp import ROWS, export_provider, rows_by_openinference
from evaluation.core.roles import Role
from evaluation.models import Answer, AnswerSet, ImportBatch, Project, Question, QuestionSet, Run
from evaluation.runs.execution import drain
from tests.examples import first_fast
from tests.factories import make_project, make_user
from tests.pages.browser import VIEW_IDS, VIEWS, open_window, page_problems
from tests.pages.conftest import browser, worker_browser

__all__ = ["browser", "worker_browser"]


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def client(project: Project) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.EVALUATOR, project))
    return client


def upload(client: Client, content: bytes, name: str = "traces.json", **options: Any) -> Any:
    fields = {"system": "my-rag", "rate": "1", "project": Project.objects.get().pk, **options}
    return client.post(reverse("traces-new"), fields | {"file": SimpleUploadedFile(name, content)})


@pytest.mark.django_db
@pytest.mark.parametrize("form", first_fast(["protobuf", "json"], 1))
def test_file_is_previewed_and_becomes_the_rows_it_was_written_from(client: Client, form: str) -> None:
    as_json, as_protobuf = export_provider(rows_by_openinference, "chain")
    response = upload(client, as_json if form == "json" else as_protobuf, f"traces.{form}")
    page = client.get(response.headers["Location"]).content.decode()
    assert not AnswerSet.objects.exists()
    assert not QuestionSet.objects.exists()
    assert "3 traces contain a question" in page
    assert "How long may a leave be?" in page
    assert "timed out" in page
    confirm = response.headers["Location"] + "confirm/"
    first, second = [client.post(confirm).headers["Location"] for _ in range(2)]
    answers = AnswerSet.objects.get()
    assert first == second == f"{reverse('evaluation-run')}?answers={answers.pk}"
    assert client.get(response.headers["Location"]).headers["Location"] == first
    assert (str(answers.question_set), answers.system_version.system.name) == ("my-rag traces v1", "my-rag")
    answers_by_question = {row.question.text: row for row in answers.answers.select_related("question")}
    assert list(answers_by_question) == [row["question"] for row in ROWS]
    for row in ROWS:
        answer = answers_by_question[row["question"]]
        assert (answer.text, answer.latency_seconds) == (row.get("answer", ""), row["latency_seconds"])
        assert answer.reason.removeprefix("reported: ") == row.get("error", "")
        assert [entry.text for entry in answer.contexts.all()] == [entry["text"] for entry in row["contexts"] or ()]
    assert {entry.read().tags for entry in Question.objects.all()} == {("from a trace",)}
    batch = ImportBatch.objects.get()
    assert (bytes(batch.content), batch.file_sha256) == (b"", answers.file_sha256)
    assert drain(Run.objects.get().pk, seconds=30).state == Run.State.INCOMPLETE  # a third has no answer


@pytest.mark.django_db
def test_rules_rate_and_masks_are_stored_with_the_upload(client: Client) -> None:
    text = "Did kim@example.org (010-1234-5678, 900101-1234567, EMP-0042) use sk-abcdefghijklmnop1234?"
    file = request(question_span(1), question_span(2, text), question_span(3))
    form_data = {"rules": "latency_seconds > `1.5`\n", "rate": "0", "personal": list(PERSONAL), "patterns": "EMP-####"}
    address = upload(client, file, **form_data).headers["Location"]
    batch = ImportBatch.objects.get()
    assert batch.rows == 2
    for secret in ("kim@", "1234-5678", "1234567", "0042", "sk-abc"):
        assert secret not in bytes(batch.content).decode()
    page = client.get(address).content.decode()
    assert "3 traces contain a question" in page
    assert "2 of them will be imported." in page
    assert "Masked in 5 place(s)" in page
    client.post(address + "confirm/")
    masked = "Did [masked] ([masked], [masked], [masked]) use [masked]?"
    assert list(Answer.objects.order_by("pk").values_list("question__text", flat=True)) == [
        *(masked, "How long may a leave be?")
    ]


@pytest.mark.django_db
def test_received_traces_are_previewed_and_imported_once(client: Client, project: Project) -> None:
    store_received(project, request(question_span(1), question_span(2)), None)
    page = client.get(reverse("traces-new")).content.decode()
    assert f'href="?project={project.pk}&amp;system=my-rag"' in page
    fields = {"system": "my-rag", "rate": "1", "project": project.pk, "personal": "email"}
    address = reverse("traces-new")
    early_response = client.post(address, fields)
    assert (early_response.status_code, "There are no traces of" in early_response.content.decode()) == (400, True)
    ImportBatch.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    first, second = (client.post(address, fields).headers["Location"] for _ in range(2))
    assert "2 of them will be imported." in client.get(first).content.decode()
    store_received(project, request(question_span(3)), None)  # after the preview: it goes on waiting
    client.post(first + "confirm/")
    assert AnswerSet.objects.get().answers.count() == 2
    assert [row["traces"] for row in pending_traces(project)] == [1]
    response = client.post(second + "confirm/", follow=True)  # of what was imported meanwhile
    assert "There are no traces of" in response.content.decode()
    assert AnswerSet.objects.count() == 1


@pytest.mark.django_db
def test_invalid_input_is_reported_with_its_reason(client: Client) -> None:
    file = request(question_span(1))
    for changes, text in (
        ({"rules": "a b"}, "a valid JMESPath expression"),
        ({"rate": "2"}, "less than or equal to 1"),
        ({"rate": "0"}, "There are no traces of “my-rag” to import"),
        ({"content": b'[{"question": "?", "answer": "!"}]'}, "The file contains no OpenTelemetry traces"),
        ({"content": b"{"}, "was not imported"),
        ({"content": rb'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "\ud800"}]}]}]}'}, "was not imported"),
    ):
        reply = upload(client, changes.pop("content", file), **changes)
        assert reply.status_code == 400, changes
        assert text in reply.content.decode().replace("&#x27;", "'"), changes
    assert not ImportBatch.objects.exists()


def test_every_mask_can_be_chosen() -> None:
    assert [name for name, _ in PERSONAL_TITLES] == list(PERSONAL)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)
def test_lead_imports_traces_in_the_browser(
    browser: Any, live_server: Any, settings: Any, tmp_path: Path, language: str, size: tuple[int, int]
) -> None:
    settings.CONCORD_DISPATCHER = "local"
    lead = make_user(Role.LEAD, make_project())
    file = tmp_path / "traces.pb"
    file.write_bytes(export_provider(rows_by_openinference, "chain")[1])
    with open_window(browser, live_server.url, lead, language=language, size=size) as window:
        page = window.page

        def press(selector: str) -> None:
            with page.expect_navigation():
                page.locator(selector).first.click()
            window.settle()

        window.open("/evaluations/new/")  # without a question set: traces bring their own
        press("main a[href='/evaluations/traces/']")
        page.set_input_files("input[name=file]", str(file))
        page.fill("[name=system]", "my-rag")
        page.fill("[name=rules]", "error != ''\nlatency_seconds < `2`")
        page.fill("[name=rate]", "0")
        page.check("[name=personal][value=email]")
        problems = page_problems(window, "form")
        press("main form button.primary")
        problems += page_problems(window, "preview")
        assert not AnswerSet.objects.exists()
        press("form[action$='/confirm/'] button.primary")
        assert window.path.startswith("/evaluations/new/run/?answers=")
        answers = AnswerSet.objects.get()
        questions = json.dumps(list(answers.answers.values_list("question__text", flat=True)), ensure_ascii=False)
        assert questions == json.dumps([ROWS[1]["question"], ROWS[2]["question"]], ensure_ascii=False)
        assert answers.runs.get().state == Run.State.INCOMPLETE  # one of the two has no answer
    assert not problems, "\n".join(problems)
