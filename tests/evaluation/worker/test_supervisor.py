"""What ``serve`` does with children that end: at once, then after growing pauses, and not without end."""

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

SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]
UNIT = Path(__file__).parents[3] / "examples" / "deploy"


def test_pauses_grow_while_it_ends_soon_and_begin_anew_once_it_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("child", [sys.executable, "-c", "raise SystemExit(3)"])
    pauses = []
    for _ in range(7):
        child.process.wait()
        before = time.monotonic()
        assert child.handle_exit() == "ended with code 3"
        assert child.restart_at is not None
        pauses.append(round(child.restart_at - before))
        child.start()
    assert pauses == [0, 1, 2, 4, 8, 8, 8]
    child.process.wait()
    monkeypatch.setattr(serving, "MIN_UPTIME_SECONDS", 0)
    child.handle_exit()
    assert child.quick_exits == 0


def test_it_gives_up_what_keeps_ending_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_QUICK_EXITS", 2)
    other, told = Child("other", SLEEPS), []
    child = Child("child", [sys.executable, "-c", ""])
    supervisor = Supervisor([other, child], lambda *what: told.append(what), lambda: None, interval=60)
    assert supervisor.run() == 1
    assert told == [("child", "ended with code 0")] * 3
    assert not other.alive


def test_what_others_kill_is_started_again_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_QUICK_EXITS", 1)
    child = Child("child", SLEEPS)
    for _ in range(4):
        child.process.kill()
        child.process.wait()
        child.handle_exit()
        assert not child.hopeless
        child.start()
    child.request_stop()
    child.wait_for_end()


@pytest.mark.slow
def test_a_process_below_a_child_that_ends_is_told_once() -> None:
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
def test_systemd_reads_the_unit_files_without_a_remark(tmp_path: Path) -> None:
    for unit in UNIT.iterdir():
        text = unit.read_text().replace("/srv/concord/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text.replace("/srv/concord", os.getcwd()))
    done = subprocess.run(
        ["systemd-analyze", "verify", *tmp_path.iterdir()], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
