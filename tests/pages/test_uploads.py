"""Uploading a question set: every problem by its place, or what changes; then the confirmation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Project, QuestionSet
from tests.factories import make_project, make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def client(project: Project) -> Client:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, project))
    return client


def questions(*texts: str) -> list[dict[str, Any]]:
    return [{"id": f"q{i}", "category": "c", "question": text, "expected_answer": "so"} for i, text in enumerate(texts)]


def upload(client: Client, project: Project, content: object, **fields: object) -> Any:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    data = {"project": project.pk, "file": SimpleUploadedFile("set.json", body), "name": "faq", **fields}
    return client.post(reverse("question-set-upload"), data)


def confirm(client: Client, response: Any) -> Any:
    return client.post(f"{response.headers['Location']}confirm/")


def test_upload_imports_nothing_before_confirmation(client: Client, project: Project) -> None:
    response = upload(client, project, questions("Why?", "How?"))
    assert not QuestionSet.objects.exists()
    page = client.get(response.headers["Location"]).content.decode()
    assert "This is a new question set." in page
    assert "Why?" in page
    assert confirm(client, response).headers["Location"] == reverse("question-set", args=[QuestionSet.objects.get().pk])


def test_changed_file_shows_the_difference(client: Client, project: Project) -> None:
    confirm(client, upload(client, project, questions("Why?", "How?")))
    response = upload(client, project, questions("Why not?", "How?", "When?"))
    page = client.get(response.headers["Location"]).content.decode()
    assert "1 added, 0 removed, 1 changed" in page
    assert "<del>Why?</del>" in page
    assert "<ins>Why not?</ins>" in page
    confirm(client, response)
    assert list(QuestionSet.objects.order_by("version").values_list("version", flat=True)) == [1, 2]


def test_equal_content_selects_the_existing_version(client: Client, project: Project) -> None:
    confirm(client, upload(client, project, questions("Why?")))
    response = upload(client, project, questions("Why?"))
    assert "the same content" in client.get(response.headers["Location"]).content.decode()
    confirm(client, response)
    assert QuestionSet.objects.count() == 1


def test_every_problem_is_listed_with_its_place(client: Client, project: Project) -> None:
    broken = b'[\n{"id": "a", "category": "c", "question": [7]},\n{"id": "b", "category": "c", "question": ""}\n]'
    response = upload(client, project, broken)
    page = compact(response.content.decode())
    assert response.status_code == 400
    assert "was not imported" in page
    assert "<li>set.json, line 2, question: " in page
    assert "<li>set.json, line 3, question: " in page


def test_repeated_confirmation_imports_once(client: Client, project: Project) -> None:
    response = upload(client, project, questions("Why?"))
    first_response, second_response = confirm(client, response), confirm(client, response)
    assert first_response.headers["Location"] == second_response.headers["Location"]
    assert client.get(response.headers["Location"]).status_code == 302  # the preview leads to what it became


def test_file_beyond_size_limit_is_refused(client: Client, project: Project, settings: Any) -> None:
    settings.CONCORD_LARGE_UPLOAD_BYTES = 10
    response = upload(client, project, questions("Why?"))
    assert response.status_code == 400
    page = response.content.decode()
    assert 'class="errors"' in page
    assert "CONCORD_LARGE_UPLOAD_BYTES" in page  # who runs the site can raise it


def test_uploads_of_other_projects_are_hidden(client: Client, project: Project) -> None:
    response = upload(client, project, questions("Why?"))
    foreign_client = Client()
    foreign_client.force_login(make_user(Role.EVALUATOR, make_project()))
    assert foreign_client.get(response.headers["Location"]).status_code == 404


def test_preview_names_format_and_mapping_of_every_column(client: Client, project: Project) -> None:
    response = upload(client, project, [{"user_input": "Why?", "reference": "so", "rubrics": {"1": "bad"}}])
    page = compact(client.get(response.headers["Location"]).content.decode())
    assert "Read as Ragas." in page
    assert "<td><code>rubrics</code></td><td>metadata</td>" in page


def test_preview_warns_when_no_column_became_a_reference(client: Client, project: Project) -> None:
    response = upload(client, project, [{"question": "Why?", "gold_text": "so"}])
    page = client.get(response.headers["Location"]).content.decode()
    assert "No expected answers found. Are they in gold_text?" in page


def test_map_file_is_applied_to_the_upload(client: Client, project: Project) -> None:
    map_file = SimpleUploadedFile("map.yaml", b"questions: {question: ask, expected_answer: gold_text}")
    response = upload(client, project, [{"ask": "Why?", "gold_text": "so"}], map=map_file)
    assert "Why?" in client.get(response.headers["Location"]).content.decode()
    confirm(client, response)
    assert QuestionSet.objects.get().questions.get().spec["references"] == ["so"]
    for text, sentence in (
        (b"\xff", "UTF-8. Save it as UTF-8."),
        (b"a" * 100_001, "larger than"),
        (b"rows: x", "required format"),
    ):
        refused_response = upload(client, project, [{"ask": "Why?"}], map=SimpleUploadedFile("map.yaml", text))
        assert refused_response.status_code == 400
        assert sentence in refused_response.content.decode()


def choose_columns(client: Client, page_address: str, **became: str) -> Any:
    """Send the choice of the preview's page, with these columns said to be something else."""
    page = client.get(page_address)
    form = page.context["page"].columns if "page" in page.context else page.context["columns"]
    data = {field.html_name: became.get(field.label, field.initial or "") for field in form}
    return client.post(f"{page_address}columns/", data, follow=True)


def test_column_can_be_remapped_and_file_is_read_again(client: Client, project: Project) -> None:
    rows = [{"id": "q1", "question": "Why?", "soll antwort": "So.", "quelle": "p. 3"}]
    response = upload(client, project, rows)
    address = response.headers["Location"]
    page = choose_columns(client, address, **{"soll antwort": "expected_answer"}).content.decode()
    assert "So." in page.split("Preview of the first questions")[1]
    confirm(client, response)
    question = QuestionSet.objects.get().questions.get()
    assert question.read().references == ("So.",)
    assert question.metadata == {"quelle": "p. 3"}


def test_mapping_without_questions_is_refused(client: Client, project: Project) -> None:
    address = upload(client, project, questions("Why?")).headers["Location"]
    page = choose_columns(client, address, question="").content.decode()
    assert "No column is mapped to the question." in page
    assert "Why?" in page.split("Preview of the first questions")[1]
    page_text = client.post(f"{address}columns/", {"column_0": "no field"}, follow=True).content.decode()
    assert "Select a valid choice" in page_text


def test_known_format_asks_for_no_mapping(client: Client, project: Project) -> None:
    rows = [{"user_input": "Why?", "retrieved_contexts": ["a"], "response": "b", "reference": "So."}]
    page = client.get(upload(client, project, rows).headers["Location"])
    assert page.context["page"].columns is None


def western_file(client: Client, project: Project) -> Any:
    """A file in Windows-1252, uploaded."""
    content = "id,category,question\nq1,c,Who signs the tenant’s lease?\n".encode("cp1252")
    return upload(client, project, None, file=SimpleUploadedFile("leases.csv", content))


def test_preview_offers_other_encodings(client: Client, project: Project) -> None:
    response = western_file(client, project)
    address = response.headers["Location"]
    page = client.get(address).content.decode()
    assert "Does the text look right?" in page
    assert '<option value="cp1252" selected>' in page
    assert "tenant’s lease" in page
    refused_page = client.post(f"{address}encoding/", {"encoding": "utf-8"}, follow=True).content.decode()
    assert "leases.csv, row 2" in refused_page
    assert "tenant’s lease" in refused_page  # still as it was read
    reread_page = client.post(f"{address}encoding/", {"encoding": "cp949"}, follow=True).content.decode()
    assert '<option value="cp949" selected>' in reread_page
    assert "tenant’s lease" not in reread_page
    client.post(f"{address}encoding/", {"encoding": "cp1252"})
    confirm(client, response)
    assert QuestionSet.objects.get().questions.get().read().text == "Who signs the tenant’s lease?"


def test_utf_8_file_offers_no_encoding(client: Client, project: Project) -> None:
    page = client.get(upload(client, project, questions("Why?")).headers["Location"])
    assert page.context["page"].encoding is None


def test_judgements_are_uploaded_with_topics(client: Client, project: Project) -> None:
    topics = SimpleUploadedFile("topics.tsv", b"t1\tWho pays?\nt2\tWho signs?\n")
    judgements = SimpleUploadedFile("test.qrels", b"t1 0 p7 1\nt1 0 p8 0\nt9 0 p7 1\n")
    response = upload(client, project, None, file=topics, qrels=judgements)
    page = compact(client.get(response.headers["Location"]).content.decode())
    assert "t9" in page  # a topic that the file does not have
    confirm(client, response)
    specs = QuestionSet.objects.get().questions.order_by("position")
    assert [spec.read().ground_truth_chunk_ids for spec in specs] == [("p7",), ()]
    broken = SimpleUploadedFile("test.qrels", b"t1 0 p7\n")
    topics.seek(0)
    refused_response = upload(client, project, None, file=topics, qrels=broken)
    assert refused_response.status_code == 400
    assert "relevance judgements. Expected" in refused_response.content.decode()


def send(client: Client, project: Project, name: str, data: bytes) -> Any:
    file = SimpleUploadedFile(name, data)
    return client.post(reverse("question-set-upload"), {"file": file, "name": "support", "project": project.pk})


def form_values(response: Any) -> dict[str, str]:
    return {field.html_name: field.value() for field in response.context["columns"]}


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "utf-16"])
def test_unknown_headings_show_the_columns_with_guesses(client: Client, project: Project, encoding: str) -> None:
    header = "번호;질문 내용;모범 답안;핵심어;비고\r\n"
    text = header + "7;주문은 언제 오나요?;사흘 안에 옵니다;주문 번호|A팀;\r\n8;반품되나요?;네;반품;없음\r\n"
    response = send(client, project, "질문.csv", text.encode(encoding))
    address = response["Location"]
    page = client.get(address)
    values = form_values(page)
    assert list(values.values()) == ["id", "question", "expected_answer", "expected_keywords", ""]
    assert "주문은 언제 오나요?" in page.content.decode()
    assert client.post(address + "confirm/")["Location"] == address
    assert not QuestionSet.objects.exists()
    assert client.post(address + "columns/", values)["Location"] == address
    confirm(client, response)
    first = QuestionSet.objects.get().questions.order_by("position")[0].read()
    assert (first.id, first.text, first.references) == ("7", "주문은 언제 오나요?", ("사흘 안에 옵니다",))
    assert first.keywords == (("주문 번호",), ("A팀",))


def test_confirmed_mapping_is_offered_for_the_next_file_with_the_same_header(client: Client, project: Project) -> None:
    header = "Prompt to bot,Remark,Must mention\n"
    first = send(client, project, "first.csv", (header + "Why?,It is so,order number; team A\n").encode())
    address = first["Location"]
    chosen = form_values(client.get(address)) | {"column_1": "expected_answer"}
    client.post(address + "columns/", chosen)
    confirm(client, first)
    assert QuestionSet.objects.get().questions.get().read().keywords == (("order number",), ("team A",))
    page = client.get(send(client, project, "second.csv", (header + "When?,Now,\n").encode())["Location"])
    assert form_values(page) == chosen
    assert "first.csv" in page.content.decode()
    other = client.get(send(client, project, "third.csv", b"Prompt to bot,Remark\nWhen?,Now\n")["Location"])
    assert form_values(other)["column_1"] == ""


def test_encoding_can_be_chosen_before_the_columns(client: Client, project: Project) -> None:
    response = send(
        client, project, "leases.csv", "Prompt to bot,Remark\nWho signs?,The tenant’s aunt\n".encode("cp1252")
    )
    address = response["Location"]
    for encoding in ("cp949", "cp1252"):
        client.post(address + "encoding/", {"encoding": encoding})
        page = client.get(address)
        assert f'<option value="{encoding}" selected>' in page.content.decode()
    assert "tenant’s aunt" in page.content.decode()
    assert f'href="{reverse("question-set-upload")}"' in page.content.decode()
    client.post(address + "columns/", form_values(page) | {"column_1": "expected_answer"})
    confirm(client, response)
    assert QuestionSet.objects.get().questions.get().read().references == ("The tenant’s aunt",)


def test_two_columns_for_one_text_are_refused(client: Client, project: Project) -> None:
    address = send(client, project, "q.csv", b"Prompt to bot,Remark\nWhy?,So\n")["Location"]
    response = client.post(address + "columns/", {"column_0": "question", "column_1": "question"}, follow=True)
    assert "Several columns are mapped to “Question”" in response.content.decode()
