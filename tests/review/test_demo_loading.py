"""Demo after loading: a comparison that a newcomer can read and continue."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.judges.shipped import BASELINE, default_judge
from evaluation.models import JudgeVersion, RubricVersion, Run, User
from evaluation.runs.execution import drain
from review.calibration.overview import overview
from review.calibration.workbench import load_workbench
from review.management.commands import demo
from review.management.demo.calibration import load_calibration
from review.management.demo.loader import QUEUE_TEXTS, create_demo_users, demo_project, load_demo
from review.models import Exposure, GoldSet, ReviewQueue
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
    load_demo(project, "en")
    queue = ReviewQueue.objects.get(project=project, example=False)
    assert queue.items.count() == 24
    assert queue.draws.filter(planned_after_looking=True).count() == 1  # of the system that the examples are about
    exposures = Exposure.objects.filter(user__in=queue.members.values("reviewer"), scope="answer")
    assert exposures.exists()
    assert not queue.items.filter(answer__in=exposures.values("object_id")).exists()
    inputs = load_inputs(Run.objects.get(pk=queue.draws.latest("pk").run_id))
    assert overall_scores(inputs).reviewed_answers == 26  # the examples still tell something


@pytest.mark.parametrize("language", ["en", "ko"])
def test_calibration_exercise_is_large_enough_and_loaded_once(language: str) -> None:
    project = demo_project()
    create_demo_users(project)
    lead = User.objects.get(username="lead")
    for _ in range(2):
        gold_set = load_calibration(project, lead, language)
    assert GoldSet.objects.count() == 1
    (metric,) = overview(gold_set).metrics
    assert metric.is_testable
    judge = JudgeVersion.objects.get(endpoint__isnull=False)
    assert "toy" in judge.name
    assert "toy" in judge.model
    assert judge.language == language
    assert default_judge(project) == BASELINE
    workbench = load_workbench(gold_set, judge, "answer_quality")
    statuses = [workbench.statuses.status_of(version) for version in workbench.versions]
    assert statuses == ["active", "draft"]


@pytest.mark.slow
@pytest.mark.parametrize(("language", "other"), [("en", "ko"), ("ko", "en")])
def test_lists_begin_with_the_language_of_the_reader(language: str, other: str, settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    create_demo_users(project)
    lead = User.objects.get(username="lead")
    for demo_language in ("en", "ko"):
        load_calibration(project, lead, demo_language)
        load_demo(project, demo_language)

    def names_of(loaded_language: str) -> list[tuple[str, str, str]]:
        review = QUEUE_TEXTS[loaded_language].review
        return [
            ("lead", "question-set-list", f">demo-{loaded_language}<"),
            ("lead", "calibration-list", f"calibration-{loaded_language}"),
            ("lead", "home", f"demo-{loaded_language} · demo-graph"),
            ("lead", "home", review),
            ("lead", "queue-list", review),
            ("reviewer1", "queue-list", review),
            ("reviewer1", "home", review),
        ]

    for (username, page, first), (_, _, later) in zip(names_of(language), names_of(other), strict=True):
        client = Client(headers={"accept-language": language})
        client.force_login(User.objects.get(username=username))
        content = client.get(reverse(page)).content.decode().partition("<main")[2]
        assert 0 < content.find(first) < content.find(later), (username, page)
    client = Client(headers={"accept-language": language})
    client.force_login(lead)
    for gold_set in GoldSet.objects.all():
        content = client.get(reverse("calibration", args=[gold_set.pk])).content.decode()
        assert re.search(rf"selected>\s*toy-judge-{gold_set.name[-2:]}@1<", content)


def test_demo_has_an_administrator() -> None:
    create_demo_users(demo_project())
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    assert client.get(reverse("admin:index")).status_code == 200


@pytest.mark.slow
def test_page_names_the_command_that_starts_the_toy_judge(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    settings.CONCORD_JUDGE_ORIGINS = []
    project = demo_project()
    create_demo_users(project)
    lead = User.objects.get(username="lead")
    page = reverse("calibration", args=[load_calibration(project, lead, "en").pk])
    client = Client()
    client.force_login(lead)
    action = re.search(r'action="([^"]*/run/)"', client.get(page).content.decode())
    assert action is not None
    judge = JudgeVersion.objects.get(endpoint__isnull=False)
    draft = RubricVersion.objects.get(project=project)
    client.post(action[1], {"judge": judge.pk, "family": draft.family, "rubric": draft.pk})
    drain(Run.objects.latest("pk").pk, seconds=60)
    assert "(toy judge (started by make demo))" in client.get(page).content.decode()


def test_demo_of_an_installed_package_says_that_calibration_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TOY_JUDGE", Path("nowhere.py"))
    errors = io.StringIO()
    with demo.Command(stderr=errors)._toy_judge():
        pass
    assert errors.getvalue() == (
        "This installed package has no examples, so the toy judge and calibration are not available.\n"
    )
