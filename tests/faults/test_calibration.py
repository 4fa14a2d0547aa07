"""Searches and looks whose process is killed again and again: they go on where they were, and nothing that was heard is
asked for twice."""

from __future__ import annotations

import time

import pytest

from tests.faults.site import Site, kill
from tests.judge_server import JudgeServer
from tests.review.calibration.judging import judging, learning

pytestmark = [pytest.mark.faults]
ASKED = ("--judge", "remote", "--gold", "gold")
NOT_WRITTEN = 16  # calls when a process is killed: eight that are out, and as many that came back since the last write


def killed_at(site: Site, judge: JudgeServer, command: tuple[str, ...], *counts: int) -> None:
    """Kill the command each time the judge has got so many calls of it."""
    before = judge.stats()["calls"]
    for count in counts:
        process = site.start(*command)
        end = time.monotonic() + 120
        while judge.stats()["calls"] < before + count:
            assert time.monotonic() < end
            time.sleep(0.05)
        kill(process.pid)
        process.wait()
        time.sleep(5)  # longer than the dead process's lease


def test_a_search_goes_on_and_pays_nothing_twice(site: Site, judge: JudgeServer) -> None:
    judge.behave(judging(learning))
    site.python("-m", "tests.faults.prepare_calibration", judge.base_url)
    command = ("manage.py", "calibrate", "answer_quality", *ASKED, "--strategy", "examples")
    killed_at(site, judge, command, 50, 150, 250)
    assert "offered as a candidate" in site.python(*command)
    assert site.rows("SELECT COUNT(*) FROM review_search") == [(1,)]
    assert site.rows("SELECT COUNT(*) FROM review_searchrun") == [(2,)]
    calls = 120 + 3 * 72  # the active version on all open answers, three drafts on validation
    ((heard, units),) = site.rows(
        "SELECT COUNT(*), COUNT(DISTINCT a.unit_id) FROM evaluation_reply r "
        "JOIN evaluation_attempt a ON a.id = r.attempt_id WHERE r.outcome = 'ok'"
    )
    assert (heard, units) == (calls, calls)
    judge_calls = judge.stats()["calls"] - judge.stats()["preflights"]
    assert judge_calls <= calls + 3 * NOT_WRITTEN


def test_a_look_goes_on_and_asks_nothing_twice(site: Site, judge: JudgeServer) -> None:
    judge.behave(judging(learning))
    version = site.python("-m", "tests.faults.prepare_calibration", judge.base_url)
    command = ("manage.py", "test_prompt", f"answer_quality@{version}", *ASKED)
    killed_at(site, judge, command, 50, 150)
    assert site.python(*command).splitlines()[0] == "accepted"
    assert site.rows("SELECT COUNT(*) FROM review_holdouttest") == [(1,)]
    assert site.rows("SELECT COUNT(*) FROM review_sealedverdict") == [(240,)]
    assert judge.stats()["calls"] <= 240 + 2 * NOT_WRITTEN
