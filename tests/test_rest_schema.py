"""The REST schema holds: requests generated from it never break the server, and responses match it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.apps import apps
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import sampled_from
from rest_framework.schemas.generators import EndpointEnumerator
from rest_framework.test import APIClient
from schemathesis import Case
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import positive_data_acceptance

from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge, profile_row
from evaluation.rest.endpoints import RowsViewSet
from tests.evaluation.rest.clients import Caller, token_for
from tests.examples import max_examples
from tests.factories import make_answer_set, make_project, make_scored_run
from tests.pages.world import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

NAMES = (
    "metrics",
    "question-sets",
    "uploads",
    "corpora",
    "systems",
    "answer-sets",
    "traces",
    "otlp",
    "criteria",
    "judges",
    "rubrics",
    "profiles",
    "runs",
    "draws",
    "review-queues",
    "items",
    "pair-sets",
    "retrieval-repairs",
    "answers",
    "adjudication",
    "ratings",
    "gold-sets",
    "calibrations",
    "generations",
    "generated-questions",
)
#: The schema cannot say which texts are cursors, files or names that exist, so a 400 is no surprise.
NOT_PROMISED = [positive_data_acceptance]
EXAMPLES = settings(
    max_examples=max_examples(8),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


@pytest.fixture(autouse=True)
def keep_connections() -> Iterator[None]:
    """A request closes connections around it, and with them the transaction of the test; Django's own client does
    without, too."""
    for moment in (request_started, request_finished):
        moment.disconnect(close_old_connections)
    yield
    for moment in (request_started, request_finished):
        moment.connect(close_old_connections)


@pytest.fixture(scope="module")
def api_schema(django_db_setup: None, django_db_blocker: Any) -> BaseSchema:
    """The schema as the site serves it."""
    with django_db_blocker.unblock():
        schema: BaseSchema = schemathesis.openapi.from_wsgi("/api/v1/schema/", get_wsgi_application())
    return schema


@pytest.fixture
def headers() -> dict[str, str]:
    """An administrator of a project that holds one of everything."""
    run = make_scored_run(make_answer_set())
    baseline_judge(run.project, "en")
    profile_row(run.project, "graphrag")
    caller = Caller(Role.ADMIN, run.project)
    return {"Authorization": caller.client._credentials["HTTP_AUTHORIZATION"]}


@pytest.mark.parametrize("name", NAMES)
def test_responses_to_generated_requests_match_schema(
    api_schema: BaseSchema, headers: dict[str, str], name: str
) -> None:
    operations = [result.ok() for result in api_schema.include(path_regex=f"^/api/v1/{name}/").get_all_operations()]
    assert operations
    for operation in operations:

        @EXAMPLES
        @given(case=operation.as_strategy())
        def check_response(case: Case[Any]) -> None:
            case.call_and_validate(headers=headers, excluded_checks=NOT_PROMISED)

        check_response()


ROLES = ("stranger", "viewer", "member", "outsider", "evaluator", "lead")


@pytest.mark.parametrize("person", ROLES)
def test_responses_to_every_role_match_schema(api_schema: BaseSchema, person: str) -> None:
    """Every role sends ``SCHEMA_EXAMPLES`` requests for existing objects; ``make test`` sends one each."""
    world = make_world()
    text = token_for(world.people[person], world.project)
    tables = [
        model for model in apps.get_models() if model.__module__.startswith(("contrib.", "evaluation.", "review."))
    ]
    keys = sorted({key for model in tables for key in model._base_manager.values_list("pk", flat=True)[:2]}, key=str)
    numbers = sampled_from([key for key in keys if isinstance(key, int)] or [1])

    for result in api_schema.get_all_operations():
        operation = result.ok()

        @settings(EXAMPLES, max_examples=int(os.environ.get("SCHEMA_EXAMPLES", "1")))
        @given(case=operation.as_strategy(), number=numbers)
        def check_response(case: Case[Any], number: int) -> None:
            case.path_parameters = dict.fromkeys(case.path_parameters or {}, number)
            with transaction.atomic():
                case.call_and_validate(headers={"Authorization": f"Bearer {text}"}, excluded_checks=NOT_PROMISED)
                transaction.set_rollback(True)  # what one asks leaves nothing behind for the next

        check_response()


def test_schema_names_every_endpoint_and_all_are_tested() -> None:
    paths = json.loads(APIClient().get("/api/v1/schema/").content)["paths"]
    resource_names = {path.split("/")[3] for path in paths if path.startswith("/api/v1/")}
    assert resource_names == set(NAMES)
    assert {path for path in paths if not path.startswith("/api/v1/")} == {
        "/evaluation/datasets/{id}/runs",
        "/evaluation/runs/{id}",
    }
    for verb in ("pause", "resume", "cancel", "retry-failed"):
        assert list(paths[f"/api/v1/runs/{{id}}/{verb}/"]) == ["post"]


def test_schema_responses_declare_the_serializers_used() -> None:
    paths = json.loads(APIClient().get("/api/v1/schema/").content)["paths"]
    by_hand = set()
    for path, method, callback in EndpointEnumerator().get_api_endpoints():
        responses = paths.get(path.replace("{pk}", "{id}"), {}).get(method.lower(), {}).get("responses", {})
        promised = json.dumps([response for status, response in responses.items() if status.startswith("2")])
        declared = re.findall(r"#/components/schemas/(\w+)", promised)
        name = getattr(callback, "actions", {}).get(method.lower(), method.lower())
        generic = issubclass(callback.cls, RowsViewSet) and name in {"list", "retrieve"}
        if declared and not (generic or hasattr(getattr(callback.cls, name), "kinds")):
            by_hand.add(path)
    # Responses of a declared type; tests/review/reports/test_json_types.py compares them with it.
    typed = {
        f"/api/v1/runs/{name}/"
        for name in ("compare", "{pk}/agreement", "{pk}/correction", "{pk}/report", "{pk}/standing")
    }
    typed |= {"/api/v1/otlp/v1/traces", "/api/v1/retrieval-repairs/{pk}/export/"}
    assert {path for path in by_hand if not path.startswith("/api/v1/pair-sets/")} == typed


def test_document_is_small_and_holds_each_error_once() -> None:
    content = APIClient().get("/api/v1/schema/").content
    assert len(content) <= 500_000
    document = json.loads(content)
    responses = [
        (path, method, status, response)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, response in operation["responses"].items()
    ]
    for path, method, status, response in responses:
        if status >= "400":
            assert response == {"$ref": f"#/components/responses/Error{status}"}, (path, method, status)
        elif status != "204":
            assert all(content["schema"] is not None for content in response["content"].values())
    untyped = {
        (path, media_type)
        for path, method, status, response in responses
        for media_type, content in response.get("content", {}).items()
        if content["schema"].get("type") != "string" and not {"$ref", "items", "anyOf"} & content["schema"].keys()
    }
    # Records in the format of another tool.
    assert untyped == {("/api/v1/runs/{id}/records/", "application/json")}
    report = document["paths"]["/api/v1/runs/{id}/report/"]["get"]["responses"]["200"]["content"]
    assert report["application/json"]["schema"] == {"$ref": "#/components/schemas/Report"}
    assert {"text/csv", "text/html"} <= report.keys()


def test_entry_points_lead_to_every_list() -> None:
    client = Caller(Role.ADMIN, make_project()).client
    addresses = client.get("/api/v1/").json()
    assert {"documentation", "schema", "metrics", "question-sets", "runs", "review-queues"} <= addresses.keys()
    assert addresses["runs"] == "http://testserver/api/v1/runs/"
    for name, address in addresses.items():
        # A comparison needs the ids of runs.
        assert client.get(address).status_code == (400 if name == "runs/compare" else 200), name
