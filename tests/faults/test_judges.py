"""Judges that misbehave, met by real worker processes (C1, C2, C4, C5, C6, C7, J1, J7)."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from tests.faults.site import Site
from tests.faults.test_kills import prepare_run
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer, actions
from tests.judge_server.received import ReceivedRequest

pytestmark = [pytest.mark.faults]
ANSWERS = 20


def run_worker(site: Site, run: int) -> str:
    """The run's state after a worker process has drained it."""
    site.manage("work", "--once", str(run), "--seconds", "60")
    return site.state(run)


def reply_outcomes(site: Site) -> dict[str, int]:
    return dict(site.rows("SELECT outcome, COUNT(*) FROM evaluation_reply GROUP BY outcome"))


@pytest.mark.survives(
    "A judge that asks to wait for minutes (429)",
    happens="The worker is free for other work; the unit waits.",
    see="`endpoint_resting` in `healthcheck`.",
)
def test_retry_after_of_300_seconds_frees_worker_and_is_kept_by_unit(site: Site, judge: JudgeServer) -> None:
    judge.enqueue(actions.status(429, retry_after="300"))
    run = prepare_run(site, judge, ANSWERS)
    start_time = time.monotonic()
    site.manage("work", "--once", str(run), "--seconds", "5")
    assert time.monotonic() - start_time < 60  # it did not sit the wait out
    assert site.state(run) == "running"
    assert reply_outcomes(site)["rate_limited"] == 1


@pytest.mark.parametrize("header", ["1", "date", "soon"])
def test_short_dated_and_invalid_retry_after_headers_are_survived(site: Site, judge: JudgeServer, header: str) -> None:
    retry_after = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True) if header == "date" else header
    judge.enqueue(actions.status(429, retry_after=retry_after))
    run = prepare_run(site, judge, ANSWERS)
    assert run_worker(site, run) == "completed"
    assert reply_outcomes(site) == {"ok": ANSWERS, "rate_limited": 1}


@pytest.mark.parametrize(("fault", "outcome"), [(actions.hang(), "timeout"), (actions.drip(), "timeout")])
@pytest.mark.survives(
    "Replies that never end or arrive byte by byte",
    happens="The call ends at `CONCORD_CALL_SECONDS` and is repeated.",
    see="Outcome `timeout`.",
)
def test_hanging_and_dripping_replies_end_at_the_deadline(
    site: Site, judge: JudgeServer, fault: actions.Action, outcome: str
) -> None:
    judge.enqueue(fault)
    run = prepare_run(site, judge, ANSWERS)
    assert run_worker(site, run) == "completed"
    assert reply_outcomes(site) == {"ok": ANSWERS, outcome: 1}


@pytest.mark.survives(
    "A judge's key that expires",
    happens="The run pauses instead of failing its answers.",
    see="Reason `unauthorised`; `resume_run` continues.",
)
def test_expired_key_pauses_run_until_it_is_resumed(site: Site, judge: JudgeServer) -> None:
    judge.enqueue(actions.valid_reply(), actions.status(401))
    run = prepare_run(site, judge, 200)
    assert run_worker(site, run) == "paused"
    ((reason,),) = site.rows(f"SELECT reason FROM evaluation_run WHERE id = {run}")
    assert reason == "unauthorised: HTTP 401: scripted"
    assert judge.calls < 60  # not five tries for each of two hundred answers
    site.manage("resume_run", str(run))
    assert site.state(run) == "completed"


def test_server_without_schemas_and_tools_is_asked_for_json(site: Site, judge: JudgeServer) -> None:
    judge.behave(actions.without("json_schema", "tool"))
    run = prepare_run(site, judge, ANSWERS)
    assert run_worker(site, run) == "completed"
    assert reply_outcomes(site) == {"ok": ANSWERS}
    assert site.rows("SELECT response_format, calls FROM evaluation_preflight") == [("json_object", 5)]


def test_missing_usage_reports_unknown_cost(site: Site, judge: JudgeServer) -> None:
    judge.behave(actions.valid_reply(usage=None))
    run = prepare_run(site, judge, ANSWERS)
    assert run_worker(site, run) == "completed"
    assert site.rows("SELECT COUNT(*) FROM evaluation_reply WHERE cost IS NULL AND tokens_in IS NULL") == [(ANSWERS,)]
    assert "doesn't report its token usage" in site.manage("results", str(run))


@pytest.mark.survives(
    "A provider that changes the model",
    happens="Scores keep the model that gave them.",
    see="The report names the models and their counts.",
)
def test_changed_model_name_is_reported(site: Site, judge: JudgeServer) -> None:
    judge.enqueue(*[actions.valid_reply(model="another-model")] * 5)
    run = prepare_run(site, judge, ANSWERS)
    assert run_worker(site, run) == "completed"
    report = site.manage("results", str(run))
    assert "Several models answered as remote@1" in report
    assert f"another-model (5), test-model ({ANSWERS - 5})" in report


@pytest.mark.survives(
    "Replies without a verdict",
    happens="One repair is tried, then the answer fails with a reason.",
    see="`incomplete`; `retry_failed` repeats them.",
)
def test_prose_replies_leave_the_run_incomplete(site: Site, judge: JudgeServer) -> None:
    judge.when(lambda r: not r.is_preflight and r.block["question"].split()[-1][:-1] <= "20", actions.text("Fine."))
    run = prepare_run(site, judge, ANSWERS)
    assert run_worker(site, run) == "incomplete"
    outcome_counts = reply_outcomes(site)
    assert outcome_counts["parse"] == 2 * (ANSWERS - outcome_counts["ok"])  # one repair try each
    assert outcome_counts["parse"] / 2 >= 0.6 * ANSWERS
    raw = site.rows("SELECT DISTINCT raw FROM evaluation_reply WHERE outcome = 'parse'")
    assert raw == [("Fine.",)]
    site.manage("results", str(run), check=False)
    judge.reset()
    site.manage("retry_failed", str(run))
    assert site.state(run) == "completed"


UNITS_OF_JUDGES = (
    "SELECT e.name, u.state, COUNT(*) FROM evaluation_workunit u JOIN evaluation_runjudge r ON r.id = u.run_judge_id "
    "JOIN evaluation_judgeversion v ON v.id = r.judge_version_id JOIN evaluation_endpoint e ON e.id = v.endpoint_id "
    "GROUP BY e.name, u.state ORDER BY e.name, u.state"
)
WAITING_SENTENCE = (
    "from evaluation.models import Run; from evaluation.runs.progress import call_status; "
    "from review.reports.pages.run import _resting; print(_resting(call_status(Run.objects.get()).resting))"
)


def test_other_endpoints_go_on_while_one_is_down(site: Site, judge: JudgeServer) -> None:
    with JudgeServer(latency=0.05, keep_log=False) as other:
        site.environment["CONCORD_JUDGE_ORIGINS"] = f"{judge.origin},{other.origin}"
        other.when(lambda request: not request.is_preflight, actions.status(500))
        run = prepare_run(site, judge, 200, f"--other={other.base_url}")
        site.start("manage.py", "work", str(run))
        wait_until(lambda: site.rows(UNITS_OF_JUDGES)[0] == ("local", "done", 200), 240)
        other_units = site.rows(UNITS_OF_JUDGES)[1:]
        assert {state for _, state, _ in other_units} <= {"todo", "leased"}
        assert other.calls < 30
        assert site.state(run) == "running"
        sentence = site.manage("shell", "--no-imports", "-c", WAITING_SENTENCE)
        assert sentence.startswith("other: no successful reply since")
        other.reset()
        site.wait_for(run, "completed", seconds=120)
    assert site.rows(UNITS_OF_JUDGES) == [("local", "done", 200), ("other", "done", 200)]
    assert reply_outcomes(site)["ok"] == 400


QUOTA_LEASE_COUNT = (
    "SELECT COUNT(*) FROM evaluation_endpointquotalease WHERE requested > 1"  # a preflight wants one place
)


def hold_replies(release: threading.Event) -> actions.Action:
    """A fitting answer, but not before that."""

    async def respond(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(release.wait, 90)
        return await actions.valid_reply()(request, http)

    return respond


@pytest.mark.parametrize("workers", ["drains", "clusters"])
@pytest.mark.survives(
    "Three workers reach a run's budget",
    happens="Calls stop; at most those in flight exceed it.",
    see="Reason `budget`.",
)
def test_budget_overrun_of_three_workers_is_limited_to_calls_in_flight(
    site: Site, judge: JudgeServer, workers: str
) -> None:
    (site.folder / "prices.yaml").write_text(
        "prices:\n- {model: test-model, since: 2025-01-01, input: '1', output: '1'}\n"
    )
    site.environment |= {
        "CONCORD_PRICES": str(site.folder / "prices.yaml"),
        "CONCORD_WORKERS": "1",
        "CONCORD_CALL_SECONDS": "90",
        "SITE_TASK_SECONDS": "90",
    }
    call = 0.00096  # dollars: 960 tokens at one a million
    run = prepare_run(site, judge, 400, "--budget=0.1920")  # 200 calls
    all_at_work = threading.Event()
    judge.when(lambda request: not request.is_preflight, hold_replies(all_at_work))
    if workers == "clusters":
        rings = f"from evaluation.worker.dispatch import enqueue_run; [enqueue_run({run}) for _ in range(9)]"
        site.manage("shell", "--no-imports", "-c", rings)
    arguments = ["qcluster"] if workers == "clusters" else ["work", "--once", str(run), "--seconds", "90"]
    for _ in range(3):
        site.start("manage.py", *arguments)
    wait_until(lambda: site.rows(QUOTA_LEASE_COUNT) == [(3,)], 80)
    judge.latency = 0.2
    all_at_work.set()
    site.wait_for(run, "paused", seconds=90)
    wait_until(lambda: site.rows(QUOTA_LEASE_COUNT) == [(0,)])  # what was out is written down
    assert site.rows(f"SELECT state, reason FROM evaluation_run WHERE id = {run}") == [("paused", "budget")]
    assert 16 < judge.peak <= 32  # places, shared by the three
    spent = float(site.rows("SELECT SUM(cost) FROM evaluation_reply")[0][0]) + judge.preflights * call
    assert 0.1920 - 32 * call <= spent <= 0.1920 + 32 * call + 1e-9
    site.manage("resume_run", str(run), "--budget", "10", check=False)
    site.wait_for(run, "completed", seconds=60)
    assert judge.calls <= 400  # nothing was asked twice
