"""The Python client against a real server, and against the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx2
import pytest
from drf_spectacular.generators import SchemaGenerator

from concord import Client, Refused, evaluate
from concord.client import AnswerSet, QuestionSet, ReviewQueue, Run
from evaluation.core.roles import Role
from evaluation.models import Project
from tests.evaluation.rest.clients import token_for
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)

QUESTIONS = [
    {"id": f"q{number}", "question": f"How long is leave {number}?", "reference": f"{number} days"}
    for number in range(1, 4)
]
RESPONSES = {"QuestionSet": QuestionSet, "AnswerSet": AnswerSet, "RunSummary": Run, "LedQueueShown": ReviewQueue}


@pytest.fixture
def project(settings: Any) -> Project:
    settings.CONCORD_DISPATCHER = "local"
    return make_project()


@pytest.fixture
def client(project: Project, live_server: Any) -> Iterator[Client]:
    with Client(live_server.url, token_for(make_user(Role.LEAD, project), project)) as client:
        yield client


def test_client_goes_from_questions_to_queue(client: Client, project: Project) -> None:
    questions = client.import_questions("faq", QUESTIONS)
    assert (questions.name, questions.version, questions.questions) == ("faq", 1, 3)
    answers = client.import_answers(
        questions, "my-rag", [{"question_id": row["id"], "answer": row["reference"]} for row in QUESTIONS]
    )
    run = client.wait(client.start_run(answers, judge=None, profile="graphrag"))
    assert run.has_ended
    assert client.report(run, fail_under=0.5)["run"]["id"] == run.id
    assert next(client.runs()).id == run.id
    assert list(client.question_sets()) == [questions]
    reviewer = make_user(Role.REVIEWER, project)
    queue = client.create_queue(run, [reviewer.username], metrics=["correctness"], size=2)
    assert (queue.state, queue.reviewers) == ("open", [reviewer.username])
    assert client.queue_progress(queue)


def test_client_reads_a_file_and_finds_the_equal_version(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    file.write_text("question,reference\nHow long is leave?,25 days\n", encoding="utf-8")
    assert client.import_questions("faq", file) == client.import_questions("faq", str(file))


def test_lists_follow_their_pages(client: Client) -> None:
    for number in (1, 2, 3):
        client.import_questions("faq", QUESTIONS[:number])
    versions = [one.version for one in client.question_sets(name="faq", page_size=1)]
    assert versions == [3, 2, 1]


def test_refusal_names_line_and_reason(client: Client) -> None:
    with pytest.raises(Refused) as refusal:
        client.import_questions("faq", [{"question": "How long?"}, {"question": ""}])
    assert refusal.value.status == 400
    assert re.match(r"line 2: .*question", str(refusal.value))


def test_wrong_token_is_refused(live_server: Any) -> None:
    with Client(live_server.url, "wrong") as stranger, pytest.raises(Refused) as refusal:
        list(stranger.runs())
    assert refusal.value.status == 401


def test_function_is_scored_on_a_site(client: Client) -> None:
    evaluation = evaluate(lambda question: "2 days", QUESTIONS, system="constant", client=client)
    assert [row["answer"] for row in evaluation.rows()] == ["2 days"] * 3
    assert [row["expected"] for row in evaluation.rows()] == ["1 days", "2 days", "3 days"]
    assert evaluation.verdict


def test_rows_and_requests_are_those_of_the_schema(client: Client, monkeypatch: Any) -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    for name, kind in RESPONSES.items():
        properties = schema["components"]["schemas"][name]["properties"]
        assert {field.name for field in fields(kind)} - set(properties) == set()
    sent: list[tuple[str, str]] = []
    send = httpx2.Client.request

    def record(self: httpx2.Client, method: str, url: Any, **options: Any) -> Any:
        sent.append((method.lower(), re.sub(r"/\d+/", "/{id}/", f"/api/v1/{url}")))
        return send(self, method, url, **options)

    monkeypatch.setattr(httpx2.Client, "request", record)
    evaluate(lambda question: "2 days", QUESTIONS, client=client)
    assert [(method, path) for method, path in sent if method not in schema["paths"].get(path, {})] == []
    assert len(sent) == 4
