"""The demo as it is after loading: a comparison that a newcomer can read and go on with."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.models import Run
from review.management.demo.loader import create_demo_users, demo_project, load_demo
from review.models import Exposure, ReviewQueue
from review.reports.estimates import overall_scores
from review.reports.inputs import load_inputs

pytestmark = pytest.mark.django_db


def test_nobody_is_handed_an_answer_whose_judge_they_have_seen(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    create_demo_users(project)
    load_demo(project)
    queue = ReviewQueue.objects.get(project=project, example=False)
    assert queue.items.count() == 24
    assert queue.draws.filter(planned_after_looking=True).count() == 1  # of the system that the examples are about
    seen = Exposure.objects.filter(user__in=queue.members.values("reviewer"), scope="answer")
    assert seen.exists()
    assert not queue.items.filter(answer__in=seen.values("object_id")).exists()
    judged = load_inputs(Run.objects.get(pk=queue.draws.latest("pk").run_id))
    assert overall_scores(judged).reviewed_answers == 26  # the examples still tell something
