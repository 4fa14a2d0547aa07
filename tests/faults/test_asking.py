"""Kills and many workers while systems are asked: each question once, but for those that were out, and never more at a
time than the system takes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from examples.rag_service import RagService
from tests.faults.site import ROOT, Site

pytestmark = [pytest.mark.faults]
MAX_CONCURRENCY = 4
KILLS = 3
QUESTIONS = 80


CONNECTORS = {
    "http": {"address": "{origin}/ask", "timeout_seconds": 5},
    "command": {"command": "toy", "timeout_seconds": 20},
    "chat": {"base_url": "{origin}/v1", "model": "toy-1"},
    "callable": {"function": "toy"},
}


def prepare_collection_run(site: Site, service: RagService, kind: str = "http") -> int:
    """The id of a run that asks the service by a connector; the operator allows each of them."""
    program = f"{sys.executable} {ROOT}/tests/faults/asking_program.py {{query}}"
    site.environment |= {
        "CONCORD_SYSTEM_ORIGINS": service.origin,
        "CONCORD_SYSTEM_COMMANDS": json.dumps({"toy": program}),
        "CONCORD_SYSTEM_CALLABLES": json.dumps({"toy": "tests.faults.asking_program:answer"}),
        "SYSTEM_TOY": service.origin,
    }
    settings = json.dumps(CONNECTORS[kind]).replace("{origin}", service.origin)
    return int(site.python("-m", "tests.faults.prepare_asking", str(QUESTIONS), kind, settings).splitlines()[-1])


#: Every connector on one database: the ledger is the same, and a minute goes by until leases lapse.
@pytest.mark.parametrize(
    ("site", "kind"), [*(("sqlite", kind) for kind in CONNECTORS), ("postgres", "http")], indirect=["site"]
)
@pytest.mark.survives(
    "Workers killed while a system is asked",
    happens="Only the questions in flight are asked again.",
    see="The run completes with one answer a question.",
)
def test_after_kills_only_questions_in_flight_are_asked_again(site: Site, kind: str) -> None:
    with RagService() as service:
        service.seconds = 0.05
        run = prepare_collection_run(site, service, kind)
        for killed in range(1, KILLS + 1):
            worker = subprocess.Popen(
                [sys.executable, "manage.py", "work", "--once", str(run)], cwd=ROOT, env=site.environment
            )
            kill_after = QUESTIONS * killed // (KILLS + 1)
            while len(service.asked) < kill_after and worker.poll() is None:
                time.sleep(0.02)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            site.manage("work", "--once", str(run), "--seconds", "20")
            if site.rows(f"SELECT state FROM evaluation_run WHERE id = {run}") == [("completed",)]:
                break
            time.sleep(1)
        assert site.rows(f"SELECT state FROM evaluation_run WHERE id = {run}") == [("completed",)]
        answers = site.rows(
            "SELECT status, COUNT(*), COUNT(DISTINCT question_id) FROM evaluation_answer GROUP BY status"
        )
        assert answers == [("ok", QUESTIONS, QUESTIONS)]
        repeated = {question: times for question, times in service.asked.items() if times > 1}
        assert len(service.asked) == QUESTIONS
        # Of the questions out at a kill, and of those that had come back and were about to be written together.
        assert sum(times - 1 for times in repeated.values()) <= KILLS * 3 * MAX_CONCURRENCY
        assert service.peak <= 2 * MAX_CONCURRENCY  # a killed worker's requests were still being answered


@pytest.mark.survives(
    "A system that limits calls, asked by eight workers",
    happens="All workers share the limit and keep `Retry-After`.",
    see="`rate_limited` among the outcomes of calls.",
)
def test_eight_workers_respect_system_limits_and_retry_after(site: Site) -> None:
    with RagService() as service:
        service.seconds = 0.1
        service.fault_of = lambda question, times: "limit" if times == 1 and question.endswith("7?") else ""
        run = prepare_collection_run(site, service)
        for worker in [site.start("manage.py", "work", "--once", str(run), "--seconds", "90") for _ in range(8)]:
            worker.wait(120)
        site.wait_for(run, "completed", seconds=30)
        limited = {question for question in service.asked if question.endswith("7?")}
        assert len(service.asked) == QUESTIONS
        assert {question: times for question, times in service.asked.items() if times != 1} == dict.fromkeys(limited, 2)
        assert len(limited) == QUESTIONS // 10
        assert service.peak <= MAX_CONCURRENCY
        assert site.rows("SELECT outcome, COUNT(*) FROM evaluation_reply GROUP BY outcome ORDER BY outcome") == [
            ("ok", QUESTIONS),
            ("rate_limited", QUESTIONS // 10),
        ]
