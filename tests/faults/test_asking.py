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
PLACES = 4
KILLS = 3
QUESTIONS = 80


CONNECTORS = {
    "http": {"address": "{origin}/ask", "timeout_seconds": 5},
    "command": {"command": "toy", "timeout_seconds": 20},
    "chat": {"base_url": "{origin}/v1", "model": "toy-1"},
    "callable": {"function": "toy"},
}


def prepared(site: Site, service: RagService, kind: str = "http") -> int:
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
def test_after_kills_only_questions_that_were_out_are_asked_again(site: Site, kind: str) -> None:
    with RagService() as service:
        service.seconds = 0.05
        run = prepared(site, service, kind)
        for killed in range(1, KILLS + 1):
            worker = subprocess.Popen(
                [sys.executable, "manage.py", "work", "--once", str(run)], cwd=ROOT, env=site.environment
            )
            due = QUESTIONS * killed // (KILLS + 1)
            while len(service.asked) < due and worker.poll() is None:
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
        again = {question: times for question, times in service.asked.items() if times > 1}
        assert len(service.asked) == QUESTIONS
        # Of the questions out at a kill, and of those that had come back and were about to be written together.
        assert sum(times - 1 for times in again.values()) <= KILLS * 3 * PLACES
        assert service.peak <= 2 * PLACES  # a killed worker's requests were still being answered


def test_limits_of_a_system_hold_over_eight_workers_and_a_wait_it_asks_for_too(site: Site) -> None:
    with RagService() as service:
        service.seconds = 0.1
        service.fault_of = lambda question, times: "limit" if times == 1 and question.endswith("7?") else ""
        run = prepared(site, service)
        for worker in [site.start("manage.py", "work", "--once", str(run), "--seconds", "90") for _ in range(8)]:
            worker.wait(120)
        site.wait_for(run, "completed", seconds=30)
        limited = {question for question in service.asked if question.endswith("7?")}
        assert len(service.asked) == QUESTIONS
        assert {question: times for question, times in service.asked.items() if times != 1} == dict.fromkeys(limited, 2)
        assert len(limited) == QUESTIONS // 10
        assert service.peak <= PLACES
        assert site.rows("SELECT outcome, COUNT(*) FROM evaluation_reply GROUP BY outcome ORDER BY outcome") == [
            ("ok", QUESTIONS),
            ("rate_limited", QUESTIONS // 10),
        ]
