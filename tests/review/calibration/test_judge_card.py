"""The card of a judge: prompts, proofs, looks and history as Markdown, JSON and page; and what it leaves out."""

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
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


def measured(place: Place, standing: VersionStatus) -> None:
    """A run of the judge over all answers by a version that stood so, with its agreement kept."""
    run = run_over(place.run.answer_set, judged=False)
    rubric = place.slot.active
    RunJudge.objects.create(run=run, judge_version=place.judge, rubric_version=rubric, standing=standing)
    for number, answer in enumerate(answer_rows(place.run)):
        score(run, answer, metric("correctness"), 1 + number % 5, judge_version=place.judge, rubric_version=rubric)
    cached_agreement(run, resamples=0)


def test_the_card_tells_proof_looks_and_history_and_nothing_more_of_the_hold_out(place: Place) -> None:
    place.accept(place.drafted("LIKE IT"))
    place.accept(place.drafted("SKILLED"))
    (prompt,) = load_judge_card(place.judge).prompts
    assert (prompt.family, prompt.version) == ("answer_quality", 3)
    assert [line.rpartition(": ")[2] for line in prompt.looks] == ["not_accepted", "accepted"]
    (proof,) = prompt.proofs
    assert (proof.metric, proof.answers, proof.model) == ("correctness", 120, "model-1")
    assert "activated accepted gold #2" in prompt.history[0]
    out = StringIO()
    call_command("judge_card", "judge", "--format", "json", stdout=out)
    assert json.loads(out.getvalue()) == json.loads(json.dumps(load_judge_card(place.judge).to_dict()))
    out = StringIO()
    call_command("judge_card", "judge", stdout=out)
    assert out.getvalue().startswith("# judge@1\n")
    assert "- look gold #2: answer_quality v3 (en) against answer_quality v1 (en): accepted" in out.getvalue()
    with translation.override("ko"):
        (told,) = load_judge_card(place.judge, in_words=True).prompts
    assert told.looks[1] == "gold #2: answer_quality v3 (en) · answer_quality v1 (en) 비교: 승인됨"
    assert "answer_quality v3 (en) · 적용 · 전문가 레이블로 승인" in told.history[0]


def test_agreement_stands_beside_experts_and_a_constant_guess(place: Place) -> None:
    measured(place, VersionStatus.ACTIVE)
    card = load_judge_card(place.judge)
    (one,) = card.agreement
    # Half of the 240 answers are locked.
    assert (one.metric, one.n, one.statistic) == ("correctness", 120, "cohen_kappa_quadratic")
    assert one.experts is not None
    assert one.constant == 0.0  # kappa of always saying the same is 0
    assert "| correctness | cohen_kappa_quadratic | 120 |" in as_markdown(card)
    assert one.bias_by_length is not None  # answers 0 to 9 are a character shorter than the rest
    assert "Bias of correctness with the length of answers: " in as_markdown(card)
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    page = lead.get(reverse("judge", args=[place.judge.pk])).content.decode()
    assert "bias with length" in page
    assert "n = 120" in page


@pytest.mark.parametrize("standing", [VersionStatus.DRAFT, VersionStatus.CANDIDATE])
def test_no_agreement_of_a_version_that_had_not_proved_itself(place: Place, standing: VersionStatus) -> None:
    measured(place, standing)
    card = load_judge_card(place.judge)
    assert (card.measured_in, card.agreement) == ("", [])


def test_the_page_and_its_files_are_for_evaluators(place: Place) -> None:
    place.accept(place.drafted("SKILLED"))
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, place.run.project))
    page = client.get(reverse("judge", args=[place.judge.pk])).content.decode()
    assert "proved on" in page
    at = reverse("judge-card", args=[place.judge.pk])
    assert client.get(at, {"format": "json"}).json()["judge"] == "judge@1"
    assert client.get(at).content.decode().startswith("# judge@1")
    assert client.get(at, {"format": "exe"}).status_code == 404
    viewer = Client()
    viewer.force_login(make_user(Role.VIEWER, place.run.project))
    assert viewer.get(at).status_code == 403


def test_the_offline_baseline_has_no_prompts(place: Place) -> None:
    assert load_judge_card(baseline_judge(place.run.project, "en")).prompts == []
