"""Requests that are repeated, answers that did not change, and the problems of RFC 9457."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evaluation.core.roles import Role
from evaluation.models import IdempotencyKey, Run
from evaluation.rest import idempotency
from tests.evaluation.rest.clients import API, Caller, evaluator
from tests.factories import make_answer_set, make_project, make_scored_run

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def post(caller: Caller, path: str, body: Any, key: str) -> Any:
    return caller.client.post(API + path, body, format="json", headers={"idempotency-key": key})


def test_the_same_key_twice_is_one_run() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    first, second = (post(caller, "runs/", {"answer_set": answers.pk}, "k1") for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert second["Idempotency-Replayed"] == "true"
    assert Run.objects.count() == 1
    third = post(caller, "runs/", {"answer_set": answers.pk}, "k2")
    assert third.json()["id"] != first.json()["id"]
    other = evaluator(answers.project)
    assert post(other, "runs/", {"answer_set": answers.pk}, "k1").json()["id"] != first.json()["id"]


def test_a_key_belongs_to_one_request_and_to_one_day() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    body: dict[str, Any] = {"answer_set": answers.pk}
    assert post(caller, "runs/", body, "k").status_code == 202
    refused = post(caller, "runs/", body | {"name": "other"}, "k")
    assert (refused.status_code, refused.json()["code"]) == (422, "key_reused")
    assert Run.objects.count() == 1
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert post(caller, "runs/", body | {"name": "other"}, "k").status_code == 202
    assert IdempotencyKey.objects.count() == 1
    for key in ("", "k" * 201):
        said = post(caller, "runs/", body, key).json()["errors"]
        assert said == {"Idempotency-Key": ["A text of 1 to 200 characters."]}
    assert post(caller, "metrics/", {}, "k3").status_code in {403, 405}


def test_neither_a_refusal_nor_what_was_killed_before_its_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    body = {"answer_set": answers.pk}
    assert post(caller, "runs/", {"answer_st": answers.pk}, "k").status_code == 400
    assert not IdempotencyKey.objects.exists()

    def killed(data: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "_render", killed)
        with pytest.raises(KeyboardInterrupt):
            post(caller, "runs/", body, "k")
    assert not Run.objects.exists()
    assert post(caller, "runs/", body, "k").status_code == 202


def test_unchanged_answer_is_not_sent_again() -> None:
    run = make_scored_run(make_answer_set())
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    caller = Caller(Role.EVALUATOR, run.project)
    read = caller.get(f"runs/{run.pk}/")
    again = caller.client.get(f"{API}runs/{run.pk}/", headers={"if-none-match": read["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED)
    changed = caller.client.get(f"{API}runs/{run.pk}/", headers={"if-none-match": read["ETag"]})
    assert (changed.status_code, changed.json()["status"]) == (200, "paused")


def test_errors_are_problems() -> None:
    caller = evaluator(make_project())
    unknown = caller.get("runs/999/")
    assert unknown["Content-Type"] == "application/problem+json"
    assert {"type": "about:blank", "title": "Not Found", "status": 404}.items() <= unknown.json().items()
    fields = caller.post("systems/", {"status": "x", "name": "rag"})
    assert fields.json()["status"] == 400
    assert fields.json()["errors"] == {"status": ["This field is not known here."]}
    assert caller.get("nothing/")["Content-Type"] == "application/problem+json"
