"""Idempotency keys, conditional requests and problem details (RFC 9457)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from evaluation.core.roles import Role
from evaluation.models import IdempotencyKey, RoleGrant, Run
from evaluation.rest import idempotency
from tests.evaluation.rest.clients import API, Caller, evaluator
from tests.factories import make_answer_set, make_project, make_scored_run

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def post(caller: Caller, path: str, body: Any, key: str) -> Any:
    return caller.client.post(API + path, body, format="json", headers={"idempotency-key": key})


def test_repeated_key_creates_one_run() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    response, replayed = (post(caller, "runs/", {"answer_set": answers.pk}, "k1") for _ in range(2))
    assert (response.status_code, replayed.status_code) == (202, 202)
    assert response.json() == replayed.json()
    assert replayed["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1
    other_key = post(caller, "runs/", {"answer_set": answers.pk}, "k2")
    assert other_key.json()["id"] != response.json()["id"]
    other_caller = evaluator(answers.project)
    assert post(other_caller, "runs/", {"answer_set": answers.pk}, "k1").json()["id"] != response.json()["id"]


def test_key_belongs_to_one_request_for_one_day() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    body: dict[str, Any] = {"answer_set": answers.pk}
    assert post(caller, "runs/", body, "k").status_code == 202
    response = post(caller, "runs/", body | {"name": "other"}, "k")
    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert Run.objects.count() == 1
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert post(caller, "runs/", body | {"name": "other"}, "k").status_code == 202
    assert IdempotencyKey.objects.count() == 1
    for key in ("", "k" * 201):
        errors = post(caller, "runs/", body, key).json()["errors"]
        assert errors == {"Idempotency-Key": ["Must be 1 to 200 characters."]}
    assert post(caller, "metrics/", {}, "k3").status_code in {403, 405}


def test_response_is_not_replayed_after_a_role_was_removed() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    body = {"answer_set": answers.pk}
    assert post(caller, "runs/", body, "k").status_code == 202
    RoleGrant.objects.filter(user=caller.user).delete()
    response = post(caller, "runs/", body, "k")
    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert post(caller, "runs/", body, "new").status_code in {403, 404}


def test_purge_deletes_expired_keys_of_every_user(capsys: pytest.CaptureFixture[str]) -> None:
    answers = make_answer_set()
    callers = [evaluator(answers.project), evaluator(answers.project)]
    for caller in callers:
        assert post(caller, "runs/", {"answer_set": answers.pk}, "k").status_code == 202
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert post(callers[0], "runs/", {"answer_set": answers.pk}, "k2").status_code == 202
    call_command("purge")
    assert "Responses stored for an Idempotency-Key more than a day ago: 1 deleted" in capsys.readouterr().out
    assert IdempotencyKey.objects.count() == 1


def test_refused_and_interrupted_requests_do_not_use_up_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    body = {"answer_set": answers.pk}
    assert post(caller, "runs/", {"answer_st": answers.pk}, "k").status_code == 400
    assert not IdempotencyKey.objects.exists()

    def raise_interrupt(data: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(idempotency, "_render", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            post(caller, "runs/", body, "k")
    assert not Run.objects.exists()
    assert post(caller, "runs/", body, "k").status_code == 202


def test_unchanged_response_is_304() -> None:
    run = make_scored_run(make_answer_set())
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    caller = Caller(Role.EVALUATOR, run.project)
    response = caller.get(f"runs/{run.pk}/")
    unchanged = caller.client.get(f"{API}runs/{run.pk}/", headers={"if-none-match": response["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED)
    changed = caller.client.get(f"{API}runs/{run.pk}/", headers={"if-none-match": response["ETag"]})
    assert (changed.status_code, changed.json()["status"]) == (200, "paused")


def test_errors_are_problems() -> None:
    caller = evaluator(make_project())
    not_found = caller.get("runs/999/")
    assert not_found["Content-Type"] == "application/problem+json"
    assert {"type": "about:blank", "title": "Not Found", "status": 404}.items() <= not_found.json().items()
    fields = caller.post("systems/", {"status": "x", "name": "rag"})
    assert fields.json()["status"] == 400
    assert fields.json()["errors"] == {"status": ["Unknown field."]}
    assert caller.get("nothing/")["Content-Type"] == "application/problem+json"
