"""Kills while systems are asked: each question once, but for those that were out."""

from __future__ import annotations

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


def test_after_kills_only_questions_that_were_out_are_asked_again(site: Site) -> None:
    with RagService() as service:
        service.seconds = 0.05
        site.environment |= {"CONCORD_SYSTEM_ORIGINS": service.origin}
        run = int(site.python("-m", "tests.faults.prepare_asking", str(QUESTIONS), service.origin).splitlines()[-1])
        for killed in range(1, KILLS + 1):
            worker = subprocess.Popen([sys.executable, "manage.py", "drain", str(run)], cwd=ROOT, env=site.environment)
            due = QUESTIONS * killed // (KILLS + 1)
            while len(service.asked) < due and worker.poll() is None:
                time.sleep(0.02)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            site.manage("drain", str(run), "--seconds", "20")
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
