"""New code meets messages that older code has queued (T15)."""

from __future__ import annotations

import pytest

from tests.faults.site import Site
from tests.faults.test_kills import assert_each_score_once, prepare_run
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


@pytest.mark.survives(
    "Queued tasks of older code or of another `SECRET_KEY`",
    happens="They are discarded; the sweep queues the work again.",
    see="Failed tasks in the back office; one line of the log each.",
)
def test_messages_of_older_code_are_refused_and_the_run_completes(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 40)
    site.manage("shell", "--no-imports", "-c", QUEUE.format(run=run))
    site.serve()
    site.wait_for(run, "completed", seconds=90)
    assert_each_score_once(site, run, 40)
    wait_until(lambda: failed_task_count(site) >= 3)
    failed_functions = " ".join(str(row[0]) for row in site.rows("SELECT func FROM django_q_task WHERE NOT success"))
    assert "score_everything" in failed_functions
    assert failed_functions.count("drain_run") == 2


def failed_task_count(site: Site) -> int:
    """Return the number of tasks that are listed as failed."""
    return int(site.rows("SELECT COUNT(*) FROM django_q_task WHERE NOT success")[0][0])
