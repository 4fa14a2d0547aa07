"""Permissions of owner, reviewer and stranger on each review endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from evaluation.models import RoleGrant
from review.models import Assignment, ReviewItem
from tests.factories import make_project, make_queue, make_scored_run, make_user
from tests.review.clients import API, GOOD, Caller, members

pytestmark = pytest.mark.django_db

ITEM_ACTIONS = {
    "draft": {"values": GOOD},
    "submit": {"values": GOOD, "idempotency_key": "k"},
    "reveal": {},
    "finalise": {},
    "undo": {},
    "skip": {},
    "flag": {"kind": "unsafe"},
    "escalate": {},
    "release": {},
    "extend": {},
}


def callers_by_role(queue: Any) -> dict[str, Caller]:
    """One caller of each role, with the first reviewer of the queue."""
    project = queue.project
    return {
        "member": members(queue)[0],
        "lead": Caller(make_user("lead", project)),
        "admin": Caller(make_user("admin", project)),
        "evaluator": Caller(make_user("evaluator", project)),
        "viewer": Caller(make_user("viewer", project)),
        "reviewer": Caller(make_user("reviewer", project)),
        "stranger": Caller(make_user("lead", make_project())),
        "nobody": Caller(make_user()),
    }


@pytest.mark.parametrize("action", [*ITEM_ACTIONS, ""])
def test_item_of_another_reviewer_is_not_found(action: str) -> None:
    queue = make_queue(reviewers=2)
    owner = members(queue)[0]
    item = owner.next(queue)["id"]
    callers = {name: candidate for name, candidate in callers_by_role(queue).items() if name != "member"}
    callers["other member"] = members(queue)[1]
    for name, caller in callers.items():
        path = f"items/{item}/{action}/" if action else f"items/{item}/"
        response = caller.post(path, ITEM_ACTIONS[action]) if action else caller.get(path)
        assert (name, response.status_code) == (name, 404)
    assert Assignment.objects.get(pk=item).state == Assignment.State.LEASED


READ_STATUS = {"member": 200, "lead": 200, "admin": 200}
LEAD_STATUS = {"member": 403, "lead": 204, "admin": 204}


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        ("", "get", READ_STATUS),
        ("items/", "get", READ_STATUS),
        ("progress/", "get", READ_STATUS),
        ("next/", "post", {"member": 200}),
        ("close/", "post", LEAD_STATUS),
        ("reopen/", "post", LEAD_STATUS),
    ],
)
def test_queue_exists_for_its_leads_and_members_only(path: str, method: str, expected: dict[str, int]) -> None:
    queue = make_queue()
    for name, caller in callers_by_role(queue).items():
        response = getattr(caller, method)(f"review-queues/{queue.pk}/{path}")
        assert (name, response.status_code) == (name, expected.get(name, 404))


def test_lists_contain_own_queues_only() -> None:
    queue, other_queue = make_queue(), make_queue()
    ids_by_caller = {
        name: [row["id"] for row in caller.get("review-queues/").json()["results"]]
        for name, caller in callers_by_role(queue).items()
    }
    assert {name for name, queues in ids_by_caller.items() if queues == [queue.pk]} == {"member", "lead", "admin"}
    assert {name for name, queues in ids_by_caller.items() if other_queue.pk in queues} == set()


def test_draws_and_queues_are_made_by_leads_only() -> None:
    queue = make_queue()
    draw = queue.draws.get()
    rater = queue.members.get().reviewer.username
    create_status = {"lead": 201, "admin": 201, "stranger": 404, "nobody": 404}
    for name, caller in callers_by_role(queue).items():
        queue_body = {"runs": [draw.run_id], "metrics": ["correctness"], "reviewers": [rater], "strategy": "all"}
        assert (name, caller.post("review-queues/", queue_body).status_code) == (name, create_status.get(name, 403))
        body = {"run": draw.run_id, "strategy": "uniform", "size": 2}
        assert (name, caller.post("draws/", body).status_code) == (name, create_status.get(name, 403))
        read_status = {"lead": 200, "admin": 200, "stranger": 404, "nobody": 404}.get(name, 403)
        assert (name, caller.get(f"draws/{draw.pk}/").status_code) == (name, read_status)
        assert (name, bool(caller.get("draws/").json()["results"])) == (name, name in {"lead", "admin"})


def test_overrides_are_for_leads_and_raters_of_the_answer() -> None:
    queue = make_queue()
    member = members(queue)[0]
    item = Assignment.objects.get(pk=member.next(queue)["id"]).item
    path = f"answers/{item.answer_id}/override/"
    body = {"metric": "correctness", "value": 2, "reason": "The second fact is wrong."}
    expected = {"lead": 201, "admin": 201, "evaluator": 403, "viewer": 403}
    for name, caller in callers_by_role(queue).items():
        assert (name, caller.post(path, body).status_code) == (name, expected.get(name, 404))
    assert member.submit(Assignment.objects.get(item=item).pk).status_code == 200
    assert member.post(path, body).status_code == 201


def test_reviewer_without_a_role_sees_nothing() -> None:
    queue = make_queue()
    member = members(queue)[0]
    item = member.next(queue)["id"]
    RoleGrant.objects.filter(user=member.user).delete()
    assert member.get(f"items/{item}/").status_code == 404
    assert member.post(f"review-queues/{queue.pk}/next/").status_code == 404
    assert member.get("review-queues/").json()["results"] == []


@pytest.mark.parametrize("path", ["review-queues/", "draws/", "ratings/", "items/1/", "review-queues/1/progress/"])
def test_endpoints_require_authentication(path: str) -> None:
    assert APIClient().get(f"{API}/{path}").status_code == 401


def test_unknown_fields_are_refused_and_change_nothing() -> None:
    queue = make_queue()
    member = members(queue)[0]
    item = member.next(queue)["id"]
    response = member.submit(item, blind=True, reviewer=1, state="finished")
    assert response.status_code == 400
    assert set(response.json()["errors"]) == {"blind", "reviewer", "state"}
    assert Assignment.objects.get(pk=item).state == Assignment.State.LEASED


@pytest.mark.parametrize(
    "query", ["password=1", "reviewer__password=x", "answer__pk=1", "_connector=OR", "ordering=id"]
)
def test_undeclared_parameters_are_refused(query: str) -> None:
    assert members(make_queue())[0].get(f"ratings/?{query}").status_code == 400


def test_lead_sees_all_items_and_member_own_ones() -> None:
    queue = make_queue(reviewers=2)
    first, second = members(queue)
    own_id = first.next(queue)["id"]
    second.next(queue)
    lead = Caller(make_user("lead", queue.project))
    assert len(lead.get(f"review-queues/{queue.pk}/items/").json()["results"]) == ReviewItem.objects.count()
    assert [row["id"] for row in first.get(f"review-queues/{queue.pk}/items/").json()["results"]] == [own_id]


def test_lead_who_rates_in_the_queue_sees_it_as_a_reviewer() -> None:
    run = make_scored_run()
    lead = make_user("lead", run.project)
    queue = make_queue(run, reviewers=[lead])
    assert "draws" not in Caller(lead).get(f"review-queues/{queue.pk}/").json()
    assert "draws" in Caller(make_user("lead", run.project)).get(f"review-queues/{queue.pk}/").json()
