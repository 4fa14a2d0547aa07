"""``serve`` restarts child processes at once, then after growing pauses, and stops after repeated quick exits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluation.models import ProcessRestart
from evaluation.worker import dispatch, serving
from evaluation.worker.serving import Child, Supervisor

SLEEP_COMMAND = [sys.executable, "-c", "import time; time.sleep(60)"]
UNIT = Path(__file__).parents[3] / "examples" / "deploy"


def test_restart_pauses_grow_after_quick_exits_and_reset_after_uptime(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("child", [sys.executable, "-c", "raise SystemExit(3)"])
    pauses = []
    for _ in range(7):
        child.process.wait()
        exit_time = time.monotonic()
        assert child.handle_exit() == "ended with code 3"
        assert child.restart_at is not None
        pauses.append(round(child.restart_at - exit_time))
        child.start()
    assert pauses == [0, 1, 2, 4, 8, 8, 8]
    child.process.wait()
    monkeypatch.setattr(serving, "MIN_UPTIME_SECONDS", 0)
    child.handle_exit()
    assert child.quick_exits == 0


def test_supervisor_stops_after_repeated_quick_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_QUICK_EXITS", 2)
    other_child, restarts = Child("other", SLEEP_COMMAND), []
    child = Child("child", [sys.executable, "-c", ""])
    supervisor = Supervisor([other_child, child], lambda *event: restarts.append(event), lambda: None, interval=60)
    assert supervisor.run() == 1
    assert restarts == [("child", "ended with code 0")] * 3
    assert not other_child.alive


def test_killed_child_is_always_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_QUICK_EXITS", 1)
    child = Child("child", SLEEP_COMMAND)
    for _ in range(4):
        child.process.kill()
        child.process.wait()
        child.handle_exit()
        assert not child.hopeless
        child.start()
    child.request_stop()
    child.wait_for_end()


@pytest.mark.slow
def test_ended_grandchild_is_counted_once() -> None:
    code = "from subprocess import Popen; p = [Popen(['sleep', s]) for s in '91']; p[1].wait(); p[0].wait()"
    child = Child("child", [sys.executable, "-c", code])
    lost = 0
    end = time.monotonic() + 5
    while time.monotonic() < end:
        lost += child.count_lost_children()
        time.sleep(0.1)
    child.request_stop()
    child.wait_for_end()
    assert lost == 1


@pytest.mark.django_db(transaction=True)  # what notes them closes its connection
def test_restarts_are_counted_by_host_and_part() -> None:
    dispatch.record_restart("web server", "ended with code -9")
    dispatch.record_restart("web server", "ended with code 1")
    dispatch.record_restart("cluster", "ended with code -9")
    assert sorted(ProcessRestart.objects.values_list("part", "count", "reason")) == [
        ("cluster", 1, "ended with code -9"),
        ("web server", 2, "ended with code 1"),
    ]


@pytest.mark.skipif(not Path("/usr/bin/systemd-analyze").exists(), reason="systemd is not here")
def test_systemd_unit_files_are_valid(tmp_path: Path) -> None:
    for unit in UNIT.iterdir():
        text = unit.read_text().replace("/srv/concord/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text.replace("/srv/concord", os.getcwd()))
    process = subprocess.run(
        ["systemd-analyze", "verify", *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
