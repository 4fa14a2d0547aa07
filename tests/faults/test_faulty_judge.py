"""Ten thousand answers before a judge with 2 % of each fault: complete, each score once, every call in the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import Site
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
ANSWERS, MAX_CONCURRENCY = 10_000, 32
FAULTS = (
    *("rate_limited_shortly", "rate_limited_bare", "overloaded", "server_error", "html_502", "disconnect"),
    *("hang", "drip", "prose", "fenced", "two_objects", "truncated", "refused", "bad_request"),
    *("no_usage", "negative_usage", "other_model"),
)


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    """A quick judge that fails in 34 of 100 calls."""
    with JudgeServer(latency=0.005, keep_log=False, faults=dict.fromkeys(FAULTS, 0.02), seed=7) as server:
        yield server


@pytest.mark.survives(
    "A judge with seventeen kinds of faulty replies",
    happens="Each answer has one score or a reason; every call is in the ledger.",
    see="Outcomes on the run's page; unknown costs are named.",
)
def test_run_of_10000_answers_completes_with_two_percent_of_each_fault(
    site: Site, judge: JudgeServer, tmp_path: Path
) -> None:
    site.environment |= {"CONCORD_CALL_SECONDS": "1", "SITE_LEASE_SECONDS": "30"}
    run = int(
        site.python("-m", "tests.faults.prepare_many", str(ANSWERS), judge.base_url, str(MAX_CONCURRENCY)).splitlines()[
            -1
        ]
    )
    first_worker = site.start("manage.py", "work", "--once", str(run))
    site.wait_for(run, "running", seconds=60)  # two would try the judge out beforehand, and one row tells of it
    workers = [first_worker, site.start("manage.py", "work", "--once", str(run))]
    # A worker that finds nothing left to do ends; units that wait to be tried again are done by the last one.
    site.wait_for(run, "completed", "incomplete", seconds=600)
    for worker in workers:
        worker.wait(60)
    assert site.state(run) == "completed"
    assert judge.stats()["peak"] <= MAX_CONCURRENCY
    assert set(judge.stats()["faults"]) == set(FAULTS)

    scores = site.rows(
        "SELECT COUNT(*), COUNT(DISTINCT answer_id * 1000 + metric_id), "
        "SUM(CASE WHEN status = 'failed' AND reason = '' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN status <> 'scored' AND value IS NOT NULL THEN 1 ELSE 0 END) "
        f"FROM evaluation_score WHERE run_id = {run}"
    )[0]
    assert scores[:2] == (3 * ANSWERS, 3 * ANSWERS)
    assert scores[2:] == (0, 0)
    states = dict(site.rows(f"SELECT state, COUNT(*) FROM evaluation_workunit WHERE run_id = {run} GROUP BY state"))
    assert sum(states.values()) == ANSWERS
    assert set(states) == {"done", "failed"}

    # Each attempt has its reply, and the ledger's calls are the server's own count, which leaves the preflight out.
    # Those that it never saw, because it closed a connection as they were sent, stand as lost connections.
    assert site.rows(
        "SELECT COUNT(*) FROM evaluation_attempt a LEFT JOIN evaluation_reply r ON r.attempt_id = a.id "
        "WHERE r.id IS NULL"
    ) == [(0,)]
    call_count = site.rows("SELECT COUNT(*) FROM evaluation_reply WHERE outcome <> 'not_sent'")[0][0]
    reply_counts = dict(site.rows("SELECT outcome, COUNT(*) FROM evaluation_reply GROUP BY outcome"))
    fault_counts = judge.stats()["faults"]
    unseen = call_count - judge.stats()["calls"]
    assert 0 <= unseen <= ANSWERS / 1000
    assert reply_counts["connection"] == fault_counts["disconnect"] + unseen
    for outcome, names in {
        "rate_limited": ("rate_limited_shortly", "rate_limited_bare"),
        "overloaded": ("overloaded",),
        "server_error": ("server_error", "html_502"),
        "timeout": ("hang", "drip"),
        "parse": ("prose", "fenced", "two_objects"),
        "refused": ("refused",),
        "bad_request": ("bad_request",),
    }.items():
        assert reply_counts[outcome] == sum(fault_counts[name] for name in names), outcome
    # What was not told stays unknown: neither these nor calls without an answer count as free.
    unknown = site.rows("SELECT COUNT(*) FROM evaluation_reply WHERE outcome = 'ok' AND tokens_in IS NULL")[0][0]
    assert unknown >= fault_counts["no_usage"] + fault_counts["negative_usage"]
