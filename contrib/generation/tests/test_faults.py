"""Kill a question generation while it writes and checks, on both databases: it resumes, and no recorded call is
repeated."""

from __future__ import annotations

import pytest

from contrib.generation.tests.writing import writer
from tests.faults.conftest import judge, migrated, site
from tests.faults.site import Site
from tests.faults.test_calibration import NOT_WRITTEN, kill_at_calls
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.faults
__all__ = ["judge", "migrated", "site"]
ARGUMENTS = ("-n", "asked", "-q", "2", "-m", "20", "--kinds", "single_hop", "--judge", "remote", "--seed", "1")


def test_generation_resumes_and_pays_nothing_twice(site: Site, judge: JudgeServer) -> None:
    judge.behave(writer())
    site.python("-m", "contrib.generation.tests.prepare_faults", judge.base_url)
    command = ("manage.py", "generate_questions", "house en", *ARGUMENTS)
    kill_at_calls(site, judge, command, 8, 30, 60)
    assert "done" in site.python(*command)
    calls = 20 + 2 * 32  # a passage each; two checks of what no word gave away
    ((reply_count, steps),) = site.rows(
        "SELECT COUNT(*), COUNT(DISTINCT c.step) FROM generation_generationreply r "
        "JOIN generation_generationcall c ON c.id = r.attempt_id WHERE r.outcome = 'ok'"
    )
    assert (reply_count, steps) == (calls, calls)
    assert site.rows("SELECT COUNT(*) FROM generation_draftquestion") == [(40,)]
    assert judge.stats()["calls"] - judge.stats()["preflights"] <= calls + 3 * NOT_WRITTEN
