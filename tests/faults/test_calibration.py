"""Searches and looks whose process is killed again and again: they go on where they were, and nothing that was heard is
asked for twice."""

from __future__ import annotations

import time

import pytest

from tests.faults.site import Site, kill
from tests.judge_server import JudgeServer
from tests.review.calibration.judging import biased_judge, offset_without_examples

pytestmark = [pytest.mark.faults]
JUDGE_AND_GOLD = ("--judge", "remote", "--gold", "gold")
NOT_WRITTEN = 16  # calls when a process is killed: eight that are out, and as many that came back since the last write


def kill_at_calls(site: Site, judge: JudgeServer, command: tuple[str, ...], *counts: int) -> None:
    """Kill the command each time the judge has got so many calls of it."""
    calls_before = judge.stats()["calls"]
    for count in counts:
        process = site.start(*command)
        end = time.monotonic() + 120
        while judge.stats()["calls"] < calls_before + count:
            assert time.monotonic() < end
            time.sleep(0.05)
        kill(process.pid)
        process.wait()
        time.sleep(5)  # longer than the dead process's lease


@pytest.mark.survives(
    "A prompt search killed three times",
    happens="It continues where it was; only calls in flight are repeated.",
    see="The next start of the command ends the search.",
)
def test_killed_search_resumes_without_repeating_paid_calls(site: Site, judge: JudgeServer) -> None:
    judge.behave(biased_judge(offset_without_examples))
    site.python("-m", "tests.faults.prepare_calibration", judge.base_url)
    command = ("manage.py", "calibrate", "answer_quality", *JUDGE_AND_GOLD, "--strategy", "examples")
    kill_at_calls(site, judge, command, 50, 150, 250)
    assert "proposed as a candidate" in site.python(*command)
    assert site.rows("SELECT COUNT(*) FROM review_search") == [(1,)]
    assert site.rows("SELECT COUNT(*) FROM review_searchrun") == [(2,)]
    calls = 120 + 3 * 72  # the active version on all open answers, three drafts on validation
    ((reply_count, units),) = site.rows(
        "SELECT COUNT(*), COUNT(DISTINCT a.unit_id) FROM evaluation_reply r "
        "JOIN evaluation_attempt a ON a.id = r.attempt_id WHERE r.outcome = 'ok'"
    )
    assert (reply_count, units) == (calls, calls)
    judge_calls = judge.stats()["calls"] - judge.stats()["preflights"]
    assert judge_calls <= calls + 3 * NOT_WRITTEN


@pytest.mark.survives(
    "A hold-out test killed twice",
    happens="It stays one test with one verdict an answer.",
    see="The next start of the command prints the result.",
)
def test_killed_holdout_test_resumes_without_repeating_calls(site: Site, judge: JudgeServer) -> None:
    judge.behave(biased_judge(offset_without_examples))
    version = site.python("-m", "tests.faults.prepare_calibration", judge.base_url)
    command = ("manage.py", "test_prompt", f"answer_quality@{version}", *JUDGE_AND_GOLD)
    kill_at_calls(site, judge, command, 50, 150)
    assert site.python(*command).splitlines()[0] == "accepted"
    assert site.rows("SELECT COUNT(*) FROM review_holdouttest") == [(1,)]
    assert site.rows("SELECT COUNT(*) FROM review_sealedverdict") == [(240,)]
    assert judge.stats()["calls"] <= 240 + 2 * NOT_WRITTEN
