"""Metrics endpoint for a monitoring system."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from evaluation.core.roles import Role
from evaluation.models import ApiToken, Attempt, Endpoint, Heartbeat, Project, Reply, WorkUnit
from evaluation.runs.monitoring import exposition
from evaluation.worker.endpoint_quota import QuotaLease
from tests.factories import make_draft_run, make_project, make_units, make_user, unique
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


def scrape(project: Project) -> Any:
    """Response to a scraper with an administrator's token."""
    admin, token = make_user(Role.ADMIN, project), unique("token")
    ApiToken.objects.create(
        user=admin,
        project=project,
        scope="read",
        sha256=hashlib.sha256(token.encode()).hexdigest(),
        expires_at=timezone.now() + timedelta(days=1),
    )
    return Client().get("/api/v1/metrics/", headers={"Authorization": f"Bearer {token}"})


def figures(project: Project) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(scrape(project).content.decode())
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}


def test_metrics_are_plain_text_for_token_holders() -> None:
    response = scrape(make_project())
    assert (response.status_code, response.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")


def test_units_calls_tokens_costs_and_heartbeats_are_exposed() -> None:
    run = make_draft_run()
    type(run).objects.update(state="running")
    done_unit, open_unit, _ = make_units(run, 3, kind=WorkUnit.Kind.JUDGE)
    for number, (outcome, cost) in enumerate([("rate_limited", "0"), ("ok", "0.25"), ("ok", None)], start=1):
        attempt = Attempt.objects.create(unit=done_unit, fence=1, round=0, number=number)
        Reply.objects.create(attempt=attempt, outcome=outcome, cost=cost, tokens_in=10, elapsed_seconds=0.5)
    now = timezone.now()
    WorkUnit.objects.filter(pk=done_unit.pk).update(state="done")
    WorkUnit.objects.filter(pk=open_unit.pk).update(
        state="leased", lease_token=run.start_token, lease_until=now, fence=2
    )
    Attempt.objects.create(unit=open_unit, fence=1, round=0, number=1)  # abandoned with its claim
    Attempt.objects.create(unit=open_unit, fence=2, round=0, number=1)
    Heartbeat.objects.create(host="one", seen_at=now - timedelta(seconds=40))
    values = figures(run.project)
    assert values["concord_runs", ("running",)] == 1
    assert values["concord_runs", ("paused",)] == 0
    assert [values["concord_units", ("judge", state)] for state in ("done", "leased", "todo")] == [1, 1, 1]
    assert values["concord_calls_total", ("ok", "runs")] == 2
    assert values["concord_calls_total", ("rate_limited", "runs")] == 1
    assert values["concord_calls_in_flight", ()] == 1
    assert values["concord_tokens_total", ("in", "runs")] == 30
    assert values["concord_cost_usd_total", ("runs",)] == 0.25
    assert values["concord_calls_of_unknown_cost_total", ("runs",)] == 1
    assert values["concord_call_seconds_total", ("runs",)] == 1.5
    assert values["concord_heartbeat_age_seconds", ("one",)] == pytest.approx(40, abs=10)


def test_calls_without_a_run_are_counted_in_their_project_only() -> None:
    project, other_project = make_project(), make_project()
    share = QuotaLease(Endpoint.objects.create(name="e", base_url="https://e.example"), None, 4, project_id=project.pk)
    share.renew(out=3)
    assert figures(project)["concord_calls_in_flight", ()] == 3
    assert figures(other_project)["concord_calls_in_flight", ()] == 0


def test_other_projects_are_not_counted() -> None:
    make_draft_run()
    assert figures(make_project())["concord_runs", ("draft",)] == 0


def test_every_metric_is_documented() -> None:
    documented = set(re.findall(r"`(concord_\w+)", (settings.BASE_DIR / "docs/monitoring.md").read_text()))
    Heartbeat.objects.create(host="one", seen_at=timezone.now())
    run = make_draft_run()
    names = {line.split("{")[0].split(" ")[0] for line in exposition([run.project_id]).decode().splitlines()}
    families = {name for name in names if name.startswith("concord_")}
    assert families <= documented
    assert {"concord_runs", "concord_cost_usd_total", "concord_heartbeat_age_seconds"} <= families
