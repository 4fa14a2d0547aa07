"""Large files with unknown headings: the page asks for the fields of the columns, and the file is checked again."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.datasets import views as datasets_views
from evaluation.formats import streaming
from evaluation.models import AnswerSet, ImportBatch, ImportChunk, Project, QuestionSet
from evaluation.runs import views as runs_views
from tests.factories import make_project, make_question_set, make_user, question_spec
from tests.pages.markup import compact

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
COUNT = 60
# Each kind's headings with the guessed fields, of which the last is corrected.
HEADINGS = {
    "questions": {"Nr": "id", "Prompt to bot": "question", "Remark": ""},
    "answers": {"Q no": "question_id", "Bot reply": "answer", "Remark": ""},
}
CORRECTION = {"questions": "expected_answer", "answers": "contexts"}
KINDS = pytest.mark.parametrize("kind", ["questions", "answers"])
FORMATS = pytest.mark.parametrize("extension", ["csv", "jsonl", "json"])


@pytest.fixture(autouse=True)
def row_by_row(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    monkeypatch.setattr(streaming, "SMALL_BYTES", 0)
    for module in (datasets_views, runs_views):
        monkeypatch.setattr(module, "LARGE_BYTES", 10)
        monkeypatch.setattr(module, "CHUNK_BYTES", 100)


@pytest.fixture
def project() -> Project:
    project = make_project()
    make_question_set(project, [question_spec(number, category="c") for number in range(1, COUNT + 1)])
    return project


@pytest.fixture
def client(project: Project) -> Client:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, project))
    return client


def file_content(kind: str, extension: str) -> bytes:
    """A file whose texts have line breaks and do not fit one chunk."""
    ids = [f"q{number}" for number in range(1, COUNT + 1)]
    texts = [(id_, f"Text\nof {id_}", f"note {id_} " * 20) for id_ in ids]
    if extension != "csv":
        rows = [dict(zip(HEADINGS[kind], (id_, text, [note]), strict=True)) for id_, text, note in texts]
        return (json.dumps(rows) if extension == "json" else "\n".join(map(json.dumps, rows))).encode()
    out = io.StringIO(newline="")
    csv.writer(out).writerows([list(HEADINGS[kind]), *texts])
    return out.getvalue().encode()


def upload(client: Client, project: Project, kind: str, name: str, content: bytes) -> str:
    """Upload the file and return the address of its preview."""
    file = SimpleUploadedFile(name, content)
    if kind == "questions":
        form = {"project": project.pk, "name": "faq", "file": file}
        return str(client.post(reverse("question-set-upload"), form)["Location"])
    form = {"questions": project.question_sets.earliest("pk").pk, "system": "rag", "file": file}
    return str(client.post(reverse("evaluation-new"), form)["Location"])


def form_values(page: Any) -> dict[str, str]:
    return {field.html_name: field.value() for field in page.context["columns"]}


def batch_state() -> str:
    return ImportBatch.objects.latest("pk").state


@KINDS
@FORMATS
def test_unknown_headings_are_mapped_and_the_file_is_imported(
    client: Client, project: Project, kind: str, extension: str
) -> None:
    address = upload(client, project, kind, f"big.{extension}", file_content(kind, extension))
    page = client.get(address)
    text = compact(page.content.decode())
    assert list(form_values(page).values()) == list(HEADINGS[kind].values())
    assert "of q5" in text
    assert "of q6" not in text
    assert "Choose another file" in text
    assert client.get(address, headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert client.post(f"{address}confirm/")["Location"] == address
    assert (batch_state(), ImportChunk.objects.exists()) == ("parsed", True)
    chosen = form_values(page) | {"column_2": CORRECTION[kind]}
    assert client.post(f"{address}columns/", chosen)["Location"] == address
    preview = compact(client.get(address).content.decode())
    assert "Preview of the first" in preview
    assert "Read as columns." in preview
    client.post(f"{address}confirm/")
    assert (batch_state(), ImportChunk.objects.exists()) == ("confirmed", False)
    if kind == "questions":
        question = QuestionSet.objects.latest("pk").questions.order_by("position")[1].read()
        assert (question.id, question.text) == ("q2", "Text\nof q2")
        assert question.references == (("note q2 " * 20).strip(),)
    else:
        answer = AnswerSet.objects.get().answers.get(question__external_id="q2")
        assert (answer.text, answer.contexts.count()) == ("Text\nof q2", 1)


@KINDS
def test_confirmed_mapping_is_offered_for_the_next_file_with_the_same_header(
    client: Client, project: Project, kind: str
) -> None:
    first = upload(client, project, kind, "first.csv", file_content(kind, "csv"))
    chosen = form_values(client.get(first)) | {"column_2": CORRECTION[kind]}
    client.post(f"{first}columns/", chosen)
    client.post(f"{first}confirm/")
    page = client.get(upload(client, project, kind, "second.jsonl", file_content(kind, "jsonl")))
    assert form_values(page) == chosen
    assert "The columns are mapped as for first.csv" in page.content.decode()


@KINDS
def test_wrong_mapping_lists_the_problems_and_asks_again(client: Client, project: Project, kind: str) -> None:
    address = upload(client, project, kind, "big.csv", file_content(kind, "csv"))
    values = form_values(client.get(address))
    # The remark is neither a number nor yes or no.
    wrong = values | {"column_2": "latency_seconds" if kind == "answers" else "clarification_ok"}
    client.post(f"{address}columns/", wrong)
    page = client.get(address)
    assert "The file has problems with these columns." in page.content.decode()
    assert "big.csv, row " in page.content.decode()
    assert form_values(page) == wrong
    client.post(f"{address}columns/", values)
    client.post(f"{address}confirm/")
    assert batch_state() == "confirmed"


@KINDS
def test_mapping_is_hidden_from_strangers(client: Client, project: Project, kind: str) -> None:
    address = upload(client, project, kind, "big.csv", file_content(kind, "csv"))
    stranger = Client()
    stranger.force_login(make_user(Role.EVALUATOR, make_project()))
    assert stranger.get(address).status_code == 404
    assert stranger.post(f"{address}columns/", {"column_0": "question"}).status_code == 404
    assert stranger.post(f"{address}encoding/", {"encoding": "cp1252"}).status_code == 404
    assert batch_state() == "parsed"


@KINDS
def test_mapping_page_offers_the_encoding(client: Client, project: Project, kind: str) -> None:
    content = file_content(kind, "csv").replace(b"note q1 ", "tenant’s ".encode("cp1252"))
    address = upload(client, project, kind, "big.csv", content)
    text = client.get(address).content.decode()
    assert '<option value="cp1252" selected>' in text
    assert "tenant’s" in text
    client.post(f"{address}encoding/", {"encoding": "cp949"})
    text = client.get(address).content.decode()
    assert '<option value="cp949" selected>' in text
    assert "tenant’s" not in text
    client.post(f"{address}encoding/", {"encoding": "utf-8"})
    text = client.get(address).content.decode()
    assert '<option value="utf-8" selected>' in text
    assert "big.csv, row 3" in text
    client.post(f"{address}encoding/", {"encoding": "cp1252"})
    client.post(f"{address}columns/", form_values(client.get(address)))
    client.post(f"{address}confirm/")
    assert batch_state() == "confirmed"
