"""Hostile texts of comparisons, pairs and preferences stay text."""

from __future__ import annotations

import pytest
from django.urls import reverse

from contrib.pairs.models import Pair, PairMember, PairSet
from tests.pages.test_hostile_text import ALL_HOSTILE_TEXT, CORPUS
from tests.pages.test_hostile_text_of_reviewers import inert_page, world
from tests.pages.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["world"]


def test_pairs_and_preferences_stay_text(world: World) -> None:
    pair_set = PairSet.objects.create(project=world.project, name=CORPUS[0], guideline=ALL_HOSTILE_TEXT, seed=1)
    for role in ("member", "lead"):
        PairMember.objects.create(pair_set=pair_set, reviewer=world.people[role])
    pair = Pair.objects.create(
        pair_set=pair_set, external_id=CORPUS[1], position=1, question_text=ALL_HOSTILE_TEXT,
        reference=ALL_HOSTILE_TEXT,
        system_a=CORPUS[0], system_b=CORPUS[1], text_a=ALL_HOSTILE_TEXT, text_b=ALL_HOSTILE_TEXT,
    )  # fmt: skip
    for role in ("member", "lead"):
        inert_page(world, role, reverse("pair-list"))
        assert "onerror" in inert_page(world, role, reverse("pairs-rate", args=[pair_set.pk]))
    prefer = reverse("pairs-prefer", args=[pair_set.pk])
    inert_page(world, "member", prefer, pair=str(pair.pk), value=ALL_HOSTILE_TEXT, reason=ALL_HOSTILE_TEXT)
    inert_page(world, "member", prefer, pair=str(pair.pk), value="1", reason=ALL_HOSTILE_TEXT[:4000])
    assert "onerror" in inert_page(world, "member", f"{reverse('pairs-rate', args=[pair_set.pk])}?pair={pair.pk}")
    inert_page(world, "lead", reverse("pairs", args=[pair_set.pk]))
    inert_page(
        world, "lead", reverse("pair-new"), run_a=str(world.run.pk), name=ALL_HOSTILE_TEXT, guideline=ALL_HOSTILE_TEXT
    )
