"""New code meets messages that older code has queued (T15)."""

from __future__ import annotations

import pytest

from tests.faults.site import Site
from tests.faults.test_kills import assert_each_score_once, prepared
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
QUEUE = """
from django_q.models import OrmQ
from django_q.tasks import async_task
from django.utils import timezone
async_task("evaluation.tasks.score_everything", {run})
async_task("evaluation.tasks.drain_run", {run}, "an argument it no longer takes")
async_task("evaluation.tasks.drain_run", 987654321)
OrmQ.objects.create(key="concord", payload="signed with a key of yesterday", lock=timezone.now())
"""


def test_t15_messages_of_older_code_are_refused_loudly_and_the_run_completes(site: Site, judge: JudgeServer) -> None:
    run = prepared(site, judge, 40)
    site.manage("shell", "--no-imports", "-c", QUEUE.format(run=run))
    site.serve()
    site.wait_for(run, "completed", seconds=90)
    assert_each_score_once(site, run, 40)
    wait_until(lambda: refused(site) >= 3)
    told = " ".join(str(row[0]) for row in site.rows("SELECT func FROM django_q_task WHERE NOT success"))
    assert "score_everything" in told
    assert told.count("drain_run") == 2


def refused(site: Site) -> int:
    """How many tasks stand as failed, where people look for them."""
    return int(site.rows("SELECT COUNT(*) FROM django_q_task WHERE NOT success")[0][0])
