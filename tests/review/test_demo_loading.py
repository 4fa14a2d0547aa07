"""Demo after loading: a comparison that a newcomer can read and continue."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.models import Run, User
from review.management.demo.loader import create_demo_users, demo_project, load_demo
from review.models import Exposure, ReviewQueue
from review.reports.estimates import overall_scores
from review.reports.inputs import load_inputs

pytestmark = pytest.mark.django_db


def test_demo_people_read_pages_in_the_language_of_their_browser() -> None:
    people = create_demo_users(demo_project())
    for language, title in (("en", "Home"), ("ko", "홈")):
        client = Client(headers={"accept-language": language})
        client.force_login(User.objects.get(username=people[0].username))
        assert f'<h1 class="visually-hidden">{title}</h1>' in client.get(reverse("home")).content.decode()
    assert set(User.objects.values_list("language", flat=True)) == {""}


def test_reviewer_gets_no_answer_whose_judge_was_shown(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    create_demo_users(project)
    load_demo(project)
    queue = ReviewQueue.objects.get(project=project, example=False)
    assert queue.items.count() == 24
    assert queue.draws.filter(planned_after_looking=True).count() == 1  # of the system that the examples are about
    exposures = Exposure.objects.filter(user__in=queue.members.values("reviewer"), scope="answer")
    assert exposures.exists()
    assert not queue.items.filter(answer__in=exposures.values("object_id")).exists()
    inputs = load_inputs(Run.objects.get(pk=queue.draws.latest("pk").run_id))
    assert overall_scores(inputs).reviewed_answers == 26  # the examples still tell something
