"""Batches by command, REST and back office."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from contrib.batches import ledger
from contrib.batches.models import JudgeBatch
from evaluation.core.roles import Role
from evaluation.judges.clients import client_of
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, JudgeVersion, Run
from evaluation.runs.execution import drain
from evaluation.runs.monitoring import exposition
from evaluation.worker.lifecycle import start
from tests.evaluation.rest.clients import evaluator
from tests.evaluation.runs.remote import make_answers, remote_run
from tests.factories import make_user
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def poll_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "FIRST_POLL_SECONDS", 0.0)


def answers_with_judge(judge: JudgeServer, *, batches: bool = True) -> Any:
    """An answer set of a project with a judge ``mini`` at the server."""
    answers = make_answers(3)
    endpoint = Endpoint.objects.create(name="e", base_url=judge.base_url, batches=batches)
    save_judge(answers.project, "mini", endpoint, model="judge-1", language="en")
    return answers


def options(answers: Any) -> dict[str, Any]:
    names = {"questions": answers.question_set.name, "system": answers.system_version.system.name}
    return {**names, "project": answers.project.name, "judge": ["mini"], "profile": "graphrag"}


@pytest.mark.slow
def test_evaluate_waits_for_its_batch_and_prints_the_figures(judge: JudgeServer) -> None:
    judge.batches.seconds = 1.0
    output = StringIO()
    call_command("evaluate", batch=True, stdout=output, stderr=StringIO(), **options(answers_with_judge(judge)))
    assert Run.objects.get().state == Run.State.COMPLETED
    assert "correctness" in output.getvalue()
    assert (judge.calls, len(judge.batches.requests), JudgeBatch.objects.get().state) == (0, 3, "ended")


def test_evaluate_refuses_batches_without_an_endpoint_for_them(judge: JudgeServer) -> None:
    with pytest.raises(CommandError, match="with batch support"):
        call_command("evaluate", batch=True, stdout=StringIO(), **options(answers_with_judge(judge, batches=False)))
    assert not Run.objects.exists()


def test_rest_starts_a_run_in_batches_and_lists_them(judge: JudgeServer) -> None:
    judge.batches.ending = "stuck"
    answers = answers_with_judge(judge)
    caller = evaluator(answers.project)
    body = {"answer_set": answers.pk, "judge": "mini", "profile": "graphrag", "batch": True}
    run = Run.objects.get(pk=caller.post("runs/", body).json()["id"])
    assert run.config["batch"] is True
    drain(run.pk, seconds=20)
    (batch_json,) = caller.get(f"runs/{run.pk}/").json()["batches"]
    batch_fields = {
        name: batch_json[name] for name in ("id", "state", "status", "model", "calls", "done", "reason", "ended_at")
    }
    assert batch_fields == {
        "id": "batch_1", "state": "sent", "status": "in_progress", "model": "judge-1", "calls": 3, "done": 0,
        "reason": None, "ended_at": None,
    }  # fmt: skip
    assert batch_json["sent_at"]


def test_run_page_shows_open_batches_and_the_results_of_others(judge: JudgeServer) -> None:
    judge.batches.ending, judge.batches.max_lines = "expired", 1
    answers = answers_with_judge(judge)
    viewer = make_user(Role.VIEWER, answers.project)
    caller = evaluator(answers.project)
    body = {"answer_set": answers.pk, "judge": "mini", "profile": "graphrag", "batch": True, "baseline": False}
    run = Run.objects.get(pk=caller.post("runs/", body).json()["id"])
    drain(run.pk, seconds=20)
    judge.batches.ending = "stuck"
    JudgeBatch.objects.update(done=1, failed=1)
    client = Client()
    client.force_login(viewer)
    text = " ".join(client.get(f"/runs/{run.pk}/progress/").content.decode().split())
    assert "3 in batches" in text
    assert "2 of 3 calls answered, 1 of them failed" in text
    judge.batches.ending = "expired"
    drain(run.pk, seconds=20)
    text = " ".join(client.get(f"/runs/{run.pk}/").content.decode().split())
    assert "2 in batches" in text
    assert "An earlier batch: The provider did not finish the batch in time." in text


def test_monitoring_counts_calls_in_batches(judge: JudgeServer) -> None:
    judge.batches.ending = "stuck"
    answers = answers_with_judge(judge)
    run = remote_run(judge, answers, batch=True)
    start(run)
    drain(run.pk, seconds=20)
    text = exposition([run.project_id]).decode()
    assert 'concord_calls_in_batches{state="sent"} 3.0' in text
    assert 'concord_units{kind="judge",state="batched"} 3.0' in text
    assert "concord_calls_in_flight 0.0" in text


def test_administrator_enables_batches_of_an_endpoint(judge: JudgeServer) -> None:
    endpoint = Endpoint.objects.create(name="e", base_url=judge.base_url)
    client = Client()
    client.force_login(make_user(Role.ADMIN))
    fields = {"name": "e", "provider": "openai", "base_url": judge.base_url, "max_concurrency": 3, "batches": "on"}
    reply = client.post(f"/admin/evaluation/endpoint/{endpoint.pk}/change/", fields)
    assert reply.status_code == 302
    endpoint.refresh_from_db()
    assert endpoint.batches


def test_azure_endpoint_takes_no_batches(judge: JudgeServer) -> None:
    endpoint = Endpoint.objects.create(name="e", base_url=judge.base_url)
    client = Client()
    client.force_login(make_user(Role.ADMIN))
    fields = {
        "name": "e",
        "base_url": judge.base_url,
        "provider": "openai",
        "max_concurrency": 3,
        "azure_api_version": "2024-10-21",
    }
    address = f"/admin/evaluation/endpoint/{endpoint.pk}/change/"
    assert "Batches are not sent to Azure." in client.post(address, fields | {"batches": "on"}).content.decode()
    assert client.post(address, fields | {"azure_api_version": "v1"}).status_code == 200
    assert client.post(address, fields).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.azure_api_version, endpoint.batches) == ("2024-10-21", False)
    judge_version = JudgeVersion(endpoint=endpoint, model="m")
    assert client_of(judge_version)._transport.azure == "2024-10-21"  # type: ignore[attr-defined]


def test_rest_refuses_batches_without_an_endpoint_for_them(judge: JudgeServer) -> None:
    answers = answers_with_judge(judge, batches=False)
    body = {"answer_set": answers.pk, "judge": "mini", "batch": True}
    reply = evaluator(answers.project).post("runs/", body)
    assert (reply.status_code, reply.json()["code"]) == (409, "no_batches")


def test_batch_mode_is_not_part_of_the_configuration(judge: JudgeServer) -> None:
    answers = answers_with_judge(judge)
    caller, body = evaluator(answers.project), {"answer_set": answers.pk, "judge": "mini"}
    hashes = {
        Run.objects.get(pk=caller.post("runs/", {**body, "batch": batch}).json()["id"]).config_hash
        for batch in (True, False)
    }
    assert len(hashes) == 1
