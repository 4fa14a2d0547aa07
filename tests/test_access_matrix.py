"""Every address and every kind of person, against the table of permissions; a new address without an entry fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse

from evaluation.extensions import is_installed
from tests.access_rules import API, PAGES
from tests.installed import merged
from tests.pages.world import PEOPLE, World, make_world

#: What an address is about, by the longest start of its name.
SUBJECTS: dict[str, Callable[[World], Any]] = {
    "question-set-preview": lambda w: w.batch.uuid,
    "question-set-confirm": lambda w: w.batch.uuid,
    "question-set-cancel": lambda w: w.batch.uuid,
    "question-set-columns": lambda w: w.batch.uuid,
    "question-set-encoding": lambda w: w.batch.uuid,
    "question-set": lambda w: w.question_set.pk,
    "upload": lambda w: w.large_batch.pk,
    "set-quality": lambda w: w.question_set.pk,
    "run": lambda w: w.run.pk,
    "answers-preview": lambda w: w.answer_batch.uuid,
    "answers-confirm": lambda w: w.answer_batch.uuid,
    "answers-cancel": lambda w: w.answer_batch.uuid,
    "answers-columns": lambda w: w.answer_batch.uuid,
    "answers-encoding": lambda w: w.answer_batch.uuid,
    "answer": lambda w: w.answer.pk,
    "answer-calls": lambda w: w.answer.pk,
    "answer-set": lambda w: w.run.answer_set_id,
    "queue": lambda w: w.queue.pk,
    "review": lambda w: w.assignment.pk,
    "review-next": lambda w: w.queue.pk,
    "item": lambda w: w.assignment.pk,
    "adjudication": lambda w: w.assignment.item_id,
    "adjudication-rubric": lambda w: (w.assignment.item_id, "correctness"),
    "ruling": lambda w: w.escalation.pk,
    "raised": lambda w: w.escalation.pk,
    "draw": lambda w: w.draw.pk,
    "pair-queue-new": lambda w: (w.run.pk, w.run.pk),
    "gold-set": lambda w: w.holdout_test.gold_set_id,
    "api-calibration": lambda w: w.holdout_test.pk,
    "search": lambda w: w.search.pk,
    "calibration": lambda w: w.holdout_test.gold_set_id,
    "system": lambda w: w.system_version.system_id,
    "judge": lambda w: w.run.judges.get().judge_version_id,
    "rubric": lambda w: w.run.judges.get().rubric_version_id,
    "criterion": lambda w: w.criterion.pk,
    "profile": lambda w: w.run.profile_version_id,
    "token": lambda w: w.token_of("lead").pk,
    "password-choose": lambda _: ("MQ", "a-b"),
    **merged("SUBJECTS"),
}
QUERIES: dict[str, Callable[[World], dict[str, Any]]] = {
    "evaluation-run": lambda w: {"answers": w.run.answer_set_id},
    "queue-new": lambda w: {"run": w.run.pk},
    "queue-preview": lambda w: {"run": w.run.pk},
    "api-run-compare": lambda w: {"runs": w.run.pk},
    "run-compare": lambda w: {"runs": w.run.pk},
    "run-compare-answers": lambda w: {"runs": w.run.pk, "question": w.question_set.questions.first().external_id},
    **merged("QUERIES"),
}
BODIES: dict[str, Callable[[World], dict[str, Any]]] = {
    "answer-override": lambda w: {"metric": w.queue.metrics.get(position=0).metric_id},
    "answer-revert": lambda w: {"metric": w.queue.metrics.get(position=0).metric_id},
    "queue-new": lambda w: {"run": w.run.pk},
    "api-run-list": lambda w: {"answer_set": w.run.answer_set_id},
    "api-draw-list": lambda w: {"run": w.run.pk, "strategy": "all"},
    "api-queue-list": lambda w: {
        "runs": [w.run.pk], "metrics": ["correctness"], "reviewers": [w.people["member"].username], "strategy": "all",
    },
    "api-answer-adjudicate": lambda w: {"metric": "correctness", "value": 3, "reason": "because"},
    "api-raised-ruling": lambda w: {"upheld": False, "reason": "because"},
    "api-run-assumption": lambda _: {"accepted": True},
    "run-assume": lambda _: {"accepted": "1"},
    "api-run-override": lambda w: {
        "metric": "correctness", "answers": [w.answer.pk], "value": 3, "reason": "because",
    },
    "run-override": lambda w: {"metric": "correctness", "value:correctness": "3", "reason": "because"},
    "calibration-freeze": lambda w: {"run": w.run.pk},
    "calibration-grow": lambda w: {"run": w.run.pk},
    "api-calibration-list": lambda w: {
        "gold_set": w.holdout_test.gold_set_id, "judge": w.holdout_test.judge_version_id,
        "rubric": w.holdout_test.candidate_id,
    },
    "api-search-list": lambda w: {
        "gold_set": w.holdout_test.gold_set_id, "judge": w.holdout_test.judge_version_id, "family": "none",
        "strategy": "map",
    },
    "api-answer-override": lambda w: {"metric": "correctness", "value": 3, "reason": "because"},
    **merged("BODIES"),
}  # fmt: skip
RULES = {**PAGES, **API, **merged("RULES")}


class RollBack(Exception):
    """Takes back what a request did."""


def routes(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    """Every named address but those of the back office, which has a test of its own."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "admin":
                yield from routes(pattern)
        elif pattern.name:
            yield pattern


def address(world: World, name: str, pattern: str) -> str:
    """The address of a name with its subject filled in."""
    if "<" not in pattern:
        return reverse(name)
    short_name = name if name.startswith("api-calibration") else name.removeprefix("api-")
    start = max((key for key in SUBJECTS if short_name.startswith(key)), key=len)
    subject = SUBJECTS[start](world)
    return reverse(name, args=subject if isinstance(subject, tuple) else [subject])


def send_request(client: Client, world: World, method: str, name: str, url: str) -> Any:
    """The answer to one request."""
    if method == "GET":
        return client.get(url, QUERIES.get(name, lambda w: {})(world))
    body = BODIES.get(name, lambda w: {})(world)
    if name.startswith("api-"):
        return client.post(url, json.dumps(body), content_type="application/json")
    return client.post(url, body, query_params=QUERIES.get(name, lambda w: {})(world))


def outcome(response: HttpResponse, name: str) -> str:
    """The word of the table for an answer."""
    sent_to_login = response.status_code == 302 and "/login/?next=" in response.headers["Location"]
    if response.status_code == 401 or (sent_to_login and name != "logout"):
        return "login"
    return {403: "no", 404: "gone"}.get(response.status_code, "ok" if response.status_code < 500 else "error")


def test_every_route_has_a_permission_entry_and_vice_versa() -> None:
    route_names = {route.name for route in routes()}
    declared = {name for _, name in RULES}
    assert sorted(route_names - declared) == []
    assert sorted(declared - route_names) == []


FAST = ("anonymous", "stranger", "member")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "person", [person if person in FAST else pytest.param(person, marks=pytest.mark.slow) for person in PEOPLE]
)
def test_responses_match_permission_table(person: str) -> None:
    world = make_world()
    client = world.client(person)
    patterns = {route.name: str(route.pattern) for route in routes()}
    expected, answers = {}, {}
    for (method, name), rule in RULES.items():
        url = address(world, name, patterns[name])
        expected[method, name] = rule.split()[PEOPLE.index(person)]
        try:
            with transaction.atomic():
                response = send_request(world.client(person) if name == "logout" else client, world, method, name, url)
                answers[method, name] = outcome(response, name)
                raise RollBack
        except RollBack:
            continue
    assert answers == expected


@pytest.mark.django_db
@pytest.mark.slow
def test_routes_reject_other_http_methods() -> None:
    world = make_world()
    client = world.client("lead")
    for route in routes():
        name = str(route.name)
        for method in {"GET", "POST"} - {method for method, rule_name in RULES if rule_name == name}:
            url = address(world, name, str(route.pattern))
            response = client.get(url) if method == "GET" else client.post(url)
            if method == "GET" and hasattr(resolve(url).func, "acts_only"):
                target = response.headers["Location"]
                assert url.startswith(target), (name, target)
                assert client.get(target).status_code != 405, (name, target)
            else:
                assert response.status_code == 405, (method, name)


@pytest.mark.django_db
@pytest.mark.parametrize("cookie", ["x" * 32, "y" * 32], ids=["right token", "wrong token"])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (MULTIPART_CONTENT, encode_multipart(BOUNDARY, {"csrfmiddlewaretoken": "x" * 32})),
        ("application/x-www-form-urlencoded", b"csrfmiddlewaretoken=" + b"x" * 32),
    ],
    ids=["multipart", "urlencoded"],
)
def test_rest_answers_forms_of_a_session_without_an_error(content_type: str, body: bytes, cookie: str) -> None:
    world = make_world()
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(world.people["lead"])
    client.cookies["csrftoken"] = cookie
    patterns = {route.name: str(route.pattern) for route in routes()}
    names = [name for method, name in RULES if method == "POST" and name.startswith("api-")]
    statuses = {
        name: client.generic("POST", address(world, name, patterns[name]), body, content_type).status_code
        for name in names
    }
    assert max(statuses.values()) < 500, statuses
    assert statuses["api-run-list"] == 415
    assert {"api-otlp-traces": 415}.items() <= statuses.items() or not is_installed("traces")
