"""Retired gold sets: no further hold-out tests, and their results become visible."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from review.calibration.holdout_tests import request_holdout_test
from review.calibration.retirement import holdout_results, retire
from review.calibration.versions import freeze, grow
from review.models import GoldItem
from review.statistics.acceptance import Claim
from tests.evaluation.rest.clients import Caller
from tests.factories import make_user
from tests.review.calibration.labelled import worth
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


def expected_loss() -> float:
    """Loss of a judge that gives the true level; labels lie half a level above it where the experts differ."""
    holdout_items = GoldItem.objects.filter(split="hold_out").select_related("answer")
    true_levels = [worth(int(item.answer.text.split()[1].rstrip(","))) for item in holdout_items]
    return sum((item.label - level) ** 2 for item, level in zip(holdout_items, true_levels, strict=True)) / len(
        true_levels
    )


def test_holdout_results_are_shown_only_after_retirement(place: CalibrationSetup) -> None:
    place.test_version(place.create_draft("LIKE IT"))
    place.test_version(place.create_draft("SKILLED"))
    with pytest.raises(DomainError, match="gold_not_retired"):
        holdout_results(place.gold)
    retire(place.gold, by=None, reason="The next one is larger.")
    rejected, accepted = holdout_results(place.gold)
    assert (rejected.look, rejected.outcome, rejected.answers) == ("gold #1", "not_accepted", 120)
    assert (accepted.look, accepted.outcome, accepted.metric) == ("gold #2", "accepted", "correctness")
    assert accepted.candidate_loss == pytest.approx(expected_loss())
    assert accepted.lower_by == pytest.approx(accepted.against_loss - accepted.candidate_loss)
    assert accepted.low is not None
    assert accepted.high is not None
    assert 0 < accepted.low < accepted.lower_by < accepted.high
    assert rejected.low is not None
    assert rejected.low < 0


@pytest.mark.slow
def test_renewed_proof_is_reported_against_the_same_version(place: CalibrationSetup) -> None:
    skilled_version = place.create_draft("SKILLED")
    place.test_version(skilled_version)
    place.test_version(skilled_version, claim=Claim.NOT_WORSE)
    retire(place.gold, by=None, reason="r")
    renewed = holdout_results(place.gold)[1]
    assert (renewed.against, renewed.lower_by, renewed.answers) == (f"judge: {skilled_version}", 0.0, 120)


def test_retired_gold_set_refuses_tests_and_growth(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    with pytest.raises(DomainError, match="reason_required"):
        retire(place.gold, by=None, reason=" ")
    holdout_test = request_holdout_test(place.gold, place.judge, version, by=None)
    with pytest.raises(DomainError, match="look_open"):
        retire(place.gold, by=None, reason="r")
    assert place.test_version(version).number == holdout_test.number
    retire(place.gold, by=None, reason="r")
    with pytest.raises(DomainError, match="gold_retired"):
        retire(place.gold, by=None, reason="r")
    with pytest.raises(DomainError, match="gold_retired"):
        place.test_version(place.create_draft("LIKE IT"))
    with pytest.raises(DomainError, match="gold_retired"):
        grow(place.run, "gold", by=None)


@pytest.mark.slow
def test_command_page_and_rest_retire_a_gold_set_and_show_results(place: CalibrationSetup, tmp_path: Path) -> None:
    place.test_version(place.create_draft("SKILLED"))
    lead, viewer = Caller(Role.LEAD, place.run.project), Caller(Role.VIEWER, place.run.project)
    path = f"gold-sets/{place.gold.pk}"
    assert lead.get(f"{path}/hold-out/").status_code == 409
    assert viewer.post(f"{path}/retire/", {"reason": "r"}).status_code == 403
    browser = Client()
    browser.force_login(make_user(Role.LEAD, place.run.project))
    page = reverse("calibration", args=[place.gold.pk])
    assert "Results of the hold-out tests" not in browser.get(page).content.decode()
    browser.post(reverse("calibration-retire", args=[place.gold.pk]), {"reason": "A larger one is there."})
    assert "Results of the hold-out tests" in browser.get(page).content.decode()
    assert "Run hold-out test" not in browser.get(page).content.decode()
    assert lead.post(f"{path}/retire/", {"reason": "r"}).status_code == 409
    assert lead.get(f"{path}/").json()["retired"] is True
    (holdout_result,) = lead.get(f"{path}/hold-out/").json()
    assert (holdout_result["look"], holdout_result["answers"]) == ("gold #1", 120)
    assert viewer.get(f"{path}/hold-out/").status_code == 403
    out = StringIO()
    call_command("gold_set", "show", "gold", stdout=out)
    assert "retired; results of its hold-out tests" in out.getvalue()
    out = StringIO()
    call_command("gold_set", "show", "gold", "--format", "json", stdout=out)
    assert json.loads(out.getvalue())["hold_out"][0]["outcome"] == "accepted"
    call_command("gold_set", "export", "gold", "--output", str(tmp_path / "all.jsonl"), stdout=out)
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 240
    with pytest.raises(CommandError, match="retired"):
        call_command("gold_set", "retire", "gold", "--reason", "again")


def test_answers_locked_by_another_gold_set_are_excluded(place: CalibrationSetup) -> None:
    place.test_version(place.create_draft("LIKE IT"))
    other_gold = freeze(place.run, "other", by=None, seed=5)
    retire(place.gold, by=None, reason="r")
    holdout_answers = set(place.gold.items.filter(split="hold_out").values_list("answer", flat=True))
    locked = set(other_gold.items.filter(split="hold_out").values_list("answer", flat=True))
    assert holdout_results(place.gold)[0].answers == len(holdout_answers - locked) < len(holdout_answers)
    retire(other_gold, by=None, reason="r")
    assert holdout_results(place.gold)[0].answers == len(holdout_answers)
