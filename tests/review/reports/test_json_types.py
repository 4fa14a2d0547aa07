"""Reports, agreement, corrections and comparisons match their schemas, which list every key."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import jsonschema_rs
import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from evaluation.core.roles import Role
from evaluation.models import Run
from evaluation.profiles.spec import shipped_profiles
from review.management.demo.loader import DATA_DIR, create_demo_users, demo_project, load_demo
from tests.evaluation.rest.clients import Caller
from tests.factories import make_project
from tests.review.builders import answers_to, run_over
from tests.review.sampled import fill, rate_half

pytestmark = pytest.mark.django_db
Check = Callable[[Any, str], None]


def closed(schema: Any) -> Any:
    """Copy of a schema whose objects allow no other keys than those it lists."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: closed(part) for key, part in schema.items()}
    return {"additionalProperties": False, **copy} if isinstance(copy.get("properties"), dict) else copy


@pytest.fixture
def check() -> Check:
    """Check of a document against a component of the OpenAPI document."""
    components = closed(json.loads(APIClient().get("/api/v1/schema/").content)["components"])

    def validate(document: Any, name: str) -> None:
        jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components}).validate(
            document
        )

    return validate


def check_run(caller: Caller, run: Run, check: Check) -> dict[str, Any]:
    """Check all figures of the run and return its report."""
    response = caller.get(f"runs/{run.pk}/report/", fail_under=0.5, baseline=run.pk, max_drop=0.1)
    report: dict[str, Any] = json.loads(b"".join(response.streaming_content))
    check(report, "Report")
    for by in ("category", "period"):
        check(caller.get(f"runs/{run.pk}/agreement/", by=by, resamples=20).json(), "Agreement")
    check(caller.get(f"runs/{run.pk}/correction/", by="category").json(), "Correction")
    check(caller.get(f"runs/{run.pk}/standing/").json(), "Standing")
    return report


def test_report_of_a_rated_run_matches_its_schema(check: Check) -> None:
    run = fill(run_over(answers_to(["a"] * 40)), [5, 3] * 20)
    rate_half(run, [4, 3] * 10)
    report = check_run(Caller(Role.LEAD, run.project), run, check)
    assert report["metrics"]["correctness"]["corrected"]["value"] is not None
    with pytest.raises(jsonschema_rs.ValidationError, match="unlisted"):
        check(report | {"unlisted": 1}, "Report")


@pytest.mark.slow
def test_figures_of_the_demo_match_their_schemas(check: Check, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    create_demo_users(project)
    load_demo(project, "en")
    caller = Caller(Role.LEAD, project)
    runs = list(Run.objects.filter(project=project).order_by("pk"))
    for run in runs:
        check_run(caller, run, check)
    ids = ",".join(str(run.pk) for run in runs[:4])
    comparison = caller.get("runs/compare/", runs=ids, max_drop=0.1, margin=0.05).json()
    check(comparison, "Comparison")
    assert comparison["differences"]


@pytest.mark.slow
@pytest.mark.parametrize("profile", [profile.name for profile in shipped_profiles()])
def test_report_of_each_profile_matches_its_schema(check: Check, settings: Any, profile: str) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = make_project()
    options = {"project": project.name, "stdout": StringIO()}
    call_command("import_questions", str(DATA_DIR / "en" / "questions.yaml"), name="demo", **options)
    call_command(
        "import_answers",
        str(DATA_DIR / "en" / "answers_vector.jsonl"),
        questions="demo",
        system="demo-vector",
        **options,
    )
    ids = ["single-01", "single-06", "two-hop-01", "agg-01", "neg-01", "neg-02"]
    call_command("evaluate", questions="demo", system="demo-vector", profile=profile, ids=ids, **options)
    check_run(Caller(Role.LEAD, project), Run.objects.latest("pk"), check)
