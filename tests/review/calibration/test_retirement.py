"""A gold set that is retired: nobody looks at it any more, and what looks saw is told, not before."""

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
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


def expected_loss() -> float:
    """Of a judge who says what each answer is worth: labels lie half a level above it where two experts differ."""
    held = GoldItem.objects.filter(split="hold_out").select_related("answer")
    right = [worth(int(one.answer.text.split()[1].rstrip(","))) for one in held]
    return sum((one.label - said) ** 2 for one, said in zip(held, right, strict=True)) / len(right)


def test_what_looks_saw_is_told_then_and_not_before(place: Place) -> None:
    place.accept(place.drafted("LIKE IT"))
    place.accept(place.drafted("SKILLED"))
    with pytest.raises(DomainError, match="gold_not_retired"):
        holdout_results(place.gold)
    retire(place.gold, by=None, reason="The next one is larger.")
    like, skilled = holdout_results(place.gold)
    assert (like.look, like.outcome, like.answers) == ("gold #1", "not_accepted", 120)
    assert (skilled.look, skilled.outcome, skilled.metric) == ("gold #2", "accepted", "correctness")
    assert skilled.candidate_loss == pytest.approx(expected_loss())
    assert skilled.lower_by == pytest.approx(skilled.against_loss - skilled.candidate_loss)
    assert skilled.low is not None
    assert skilled.high is not None
    assert 0 < skilled.low < skilled.lower_by < skilled.high
    assert like.low is not None
    assert like.low < 0


def test_a_proof_beside_another_judge_is_told_against_that(place: Place) -> None:
    skilled = place.drafted("SKILLED")
    place.accept(skilled)
    place.accept(skilled, claim=Claim.NOT_WORSE)
    retire(place.gold, by=None, reason="r")
    again = holdout_results(place.gold)[1]
    assert (again.against, again.lower_by, again.answers) == (f"judge: {skilled}", 0.0, 120)


def test_nobody_looks_or_lets_it_grow_any_more(place: Place) -> None:
    version = place.drafted("SKILLED")
    with pytest.raises(DomainError, match="reason_required"):
        retire(place.gold, by=None, reason=" ")
    look = request_holdout_test(place.gold, place.judge, version, by=None)
    with pytest.raises(DomainError, match="look_open"):
        retire(place.gold, by=None, reason="r")
    assert place.accept(version).number == look.number
    retire(place.gold, by=None, reason="r")
    with pytest.raises(DomainError, match="gold_retired"):
        retire(place.gold, by=None, reason="r")
    with pytest.raises(DomainError, match="gold_retired"):
        place.accept(place.drafted("LIKE IT"))
    with pytest.raises(DomainError, match="gold_retired"):
        grow(place.run, "gold", by=None)


def test_command_page_and_rest_retire_and_tell(place: Place, tmp_path: Path) -> None:
    place.accept(place.drafted("SKILLED"))
    lead, viewer = Caller(Role.LEAD, place.run.project), Caller(Role.VIEWER, place.run.project)
    path = f"gold-sets/{place.gold.pk}"
    assert lead.get(f"{path}/hold-out/").status_code == 409
    assert viewer.post(f"{path}/retire/", {"reason": "r"}).status_code == 403
    browser = Client()
    browser.force_login(make_user(Role.LEAD, place.run.project))
    page = reverse("calibration", args=[place.gold.pk])
    assert "What looks saw" not in browser.get(page).content.decode()
    browser.post(reverse("calibration-retire", args=[place.gold.pk]), {"reason": "A larger one is there."})
    assert "What looks saw" in browser.get(page).content.decode()
    assert "Take a look" not in browser.get(page).content.decode()
    assert lead.post(f"{path}/retire/", {"reason": "r"}).status_code == 409
    assert lead.get(f"{path}/").json()["retired"] is True
    (told,) = lead.get(f"{path}/hold-out/").json()
    assert (told["look"], told["answers"]) == ("gold #1", 120)
    assert viewer.get(f"{path}/hold-out/").status_code == 403
    out = StringIO()
    call_command("gold_set", "show", "gold", stdout=out)
    assert "retired; what its looks saw" in out.getvalue()
    out = StringIO()
    call_command("gold_set", "show", "gold", "--format", "json", stdout=out)
    assert json.loads(out.getvalue())["hold_out"][0]["outcome"] == "accepted"
    call_command("gold_set", "export", "gold", "--output", str(tmp_path / "all.jsonl"), stdout=out)
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 240
    with pytest.raises(CommandError, match="retired"):
        call_command("gold_set", "retire", "gold", "--reason", "again")


def test_what_another_gold_set_still_locks_is_left_out(place: Place) -> None:
    place.accept(place.drafted("LIKE IT"))
    other = freeze(place.run, "other", by=None, seed=5)
    retire(place.gold, by=None, reason="r")
    held = set(place.gold.items.filter(split="hold_out").values_list("answer", flat=True))
    locked = set(other.items.filter(split="hold_out").values_list("answer", flat=True))
    assert holdout_results(place.gold)[0].answers == len(held - locked) < len(held)
    retire(other, by=None, reason="r")
    assert holdout_results(place.gold)[0].answers == len(held)
