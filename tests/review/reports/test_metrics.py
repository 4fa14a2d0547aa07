"""The figures that a monitoring system reads."""

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


def asked(project: Project) -> Any:
    """What a scraper with an administrator's token reads, by name and labels."""
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
    families = text_string_to_metric_families(asked(project).content.decode())
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}


def test_the_figures_are_plain_text_for_whoever_holds_a_token() -> None:
    response = asked(make_project())
    assert (response.status_code, response.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")


def test_units_calls_tokens_costs_and_heartbeats_are_told() -> None:
    run = make_draft_run()
    type(run).objects.update(state="running")
    done, open_one, _ = make_units(run, 3, kind=WorkUnit.Kind.JUDGE)
    for number, (outcome, cost) in enumerate([("rate_limited", "0"), ("ok", "0.25"), ("ok", None)], start=1):
        attempt = Attempt.objects.create(unit=done, fence=1, round=0, number=number)
        Reply.objects.create(attempt=attempt, outcome=outcome, cost=cost, tokens_in=10, elapsed_seconds=0.5)
    now = timezone.now()
    WorkUnit.objects.filter(pk=done.pk).update(state="done")
    WorkUnit.objects.filter(pk=open_one.pk).update(
        state="leased", lease_token=run.start_token, lease_until=now, fence=2
    )
    Attempt.objects.create(unit=open_one, fence=1, round=0, number=1)  # abandoned with its claim
    Attempt.objects.create(unit=open_one, fence=2, round=0, number=1)
    Heartbeat.objects.create(host="one", seen_at=now - timedelta(seconds=40))
    said = figures(run.project)
    assert said["concord_runs", ("running",)] == 1
    assert said["concord_runs", ("paused",)] == 0
    assert [said["concord_units", ("judge", state)] for state in ("done", "leased", "todo")] == [1, 1, 1]
    assert said["concord_calls_total", ("ok", "runs")] == 2
    assert said["concord_calls_total", ("rate_limited", "runs")] == 1
    assert said["concord_calls_in_flight", ()] == 1
    assert said["concord_tokens_total", ("in", "runs")] == 30
    assert said["concord_cost_usd_total", ("runs",)] == 0.25
    assert said["concord_calls_of_unknown_cost_total", ("runs",)] == 1
    assert said["concord_call_seconds_total", ("runs",)] == 1.5
    assert said["concord_heartbeat_age_seconds", ("one",)] == pytest.approx(40, abs=10)


def test_calls_of_work_without_a_run_are_in_flight_in_their_project_alone() -> None:
    project, other = make_project(), make_project()
    share = QuotaLease(Endpoint.objects.create(name="e", base_url="https://e.example"), None, 4, project_id=project.pk)
    share.renew(out=3)
    assert figures(project)["concord_calls_in_flight", ()] == 3
    assert figures(other)["concord_calls_in_flight", ()] == 0


def test_other_projects_are_not_counted() -> None:
    make_draft_run()
    assert figures(make_project())["concord_runs", ("draft",)] == 0


def test_every_figure_stands_in_the_docs() -> None:
    documented = set(re.findall(r"`(concord_\w+)", (settings.BASE_DIR / "docs/operations.md").read_text()))
    Heartbeat.objects.create(host="one", seen_at=timezone.now())
    run = make_draft_run()
    told = {line.split("{")[0].split(" ")[0] for line in exposition([run.project_id]).decode().splitlines()}
    families = {name for name in told if name.startswith("concord_")}
    assert families <= documented
    assert {"concord_runs", "concord_cost_usd_total", "concord_heartbeat_age_seconds"} <= families
