"""Judge card: prompts, approvals, hold-out tests and history as Markdown, JSON and page."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import translation

from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge
from evaluation.models import RunJudge, VersionStatus
from review.agreement.run_agreement import cached_agreement
from review.judges.card import as_markdown, load_judge_card
from tests.factories import make_user
from tests.review.builders import answer_rows, metric, run_over, score
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


def create_scored_run(place: CalibrationSetup, status: VersionStatus) -> None:
    """Create a run scored by the active rubric with this status, and cache its agreement."""
    run = run_over(place.run.answer_set, judged=False)
    rubric = place.statuses.active
    RunJudge.objects.create(run=run, judge_version=place.judge, rubric_version=rubric, standing=status)
    for number, answer in enumerate(answer_rows(place.run)):
        score(run, answer, metric("correctness"), 1 + number % 5, judge_version=place.judge, rubric_version=rubric)
    cached_agreement(run, resamples=0)


@pytest.mark.slow
def test_card_shows_approvals_tests_and_history_without_holdout_details(place: CalibrationSetup) -> None:
    place.test_version(place.create_draft("LIKE IT"))
    place.test_version(place.create_draft("SKILLED"))
    (prompt,) = load_judge_card(place.judge).prompts
    assert (prompt.family, prompt.version) == ("answer_quality", 3)
    assert [line.rpartition(": ")[2] for line in prompt.looks] == ["not_accepted", "accepted"]
    (approval,) = prompt.approvals
    assert (approval.metric, approval.answers, approval.model) == ("correctness", 120, "model-1")
    assert "activated accepted gold #2" in prompt.history[0]
    out = StringIO()
    call_command("judge_card", "judge", "--format", "json", stdout=out)
    assert json.loads(out.getvalue()) == json.loads(json.dumps(load_judge_card(place.judge).to_dict()))
    out = StringIO()
    call_command("judge_card", "judge", stdout=out)
    assert out.getvalue().startswith("# judge@1\n")
    assert "- hold-out test gold #2: answer_quality v3 (en) against answer_quality v1 (en): accepted" in out.getvalue()
    with translation.override("ko"):
        (korean_prompt,) = load_judge_card(place.judge, in_words=True).prompts
    assert korean_prompt.looks[1] == "gold #2: answer_quality v3 (en) · answer_quality v1 (en) 비교: 승인됨"
    assert "answer_quality v3 (en) · 적용 · 전문가 레이블로 승인" in korean_prompt.history[0]


def test_card_shows_agreement_with_experts_and_constant_guess(place: CalibrationSetup) -> None:
    create_scored_run(place, VersionStatus.ACTIVE)
    card = load_judge_card(place.judge)
    (row,) = card.agreement
    # Half of the 240 answers are locked.
    assert (row.metric, row.n, row.statistic) == ("correctness", 120, "cohen_kappa_quadratic")
    assert row.experts is not None
    assert row.constant == 0.0  # kappa of always saying the same is 0
    assert "| correctness | cohen_kappa_quadratic | 120 |" in as_markdown(card)
    assert row.bias_by_length is not None  # answers 0 to 9 are a character shorter than the rest
    assert "Bias of correctness with the length of answers: " in as_markdown(card)
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    page = lead.get(reverse("judge", args=[place.judge.pk])).content.decode()
    assert "Bias by length" in page
    assert "n = 120" in page


@pytest.mark.parametrize("status", [VersionStatus.DRAFT, VersionStatus.CANDIDATE])
def test_card_omits_agreement_of_unproved_versions(place: CalibrationSetup, status: VersionStatus) -> None:
    create_scored_run(place, status)
    card = load_judge_card(place.judge)
    assert (card.measured_in, card.agreement) == ("", [])


def test_page_and_files_are_for_evaluators(place: CalibrationSetup) -> None:
    place.test_version(place.create_draft("SKILLED"))
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, place.run.project))
    page = client.get(reverse("judge", args=[place.judge.pk])).content.decode()
    assert "approved on" in page
    url = reverse("judge-card", args=[place.judge.pk])
    assert client.get(url, {"format": "json"}).json()["judge"] == "judge@1"
    assert client.get(url).content.decode().startswith("# judge@1")
    assert client.get(url, {"format": "exe"}).status_code == 404
    viewer = Client()
    viewer.force_login(make_user(Role.VIEWER, place.run.project))
    assert viewer.get(url).status_code == 403


def test_offline_baseline_has_no_prompts(place: CalibrationSetup) -> None:
    assert load_judge_card(baseline_judge(place.run.project, "en")).prompts == []
