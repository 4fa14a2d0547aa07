"""Texts of a comparison, its pairs and its preferences are only ever text."""

from __future__ import annotations

import pytest
from django.urls import reverse

from contrib.pairs.models import Pair, PairMember, PairSet
from tests.pages.test_hostile_text import ALL, CORPUS
from tests.pages.test_hostile_text_of_reviewers import inert, world
from tests.pages.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
__all__ = ["world"]


def test_pairs_and_what_was_said_of_them_stay_text(world: World) -> None:
    found = PairSet.objects.create(project=world.project, name=CORPUS[0], guideline=ALL, seed=1)
    for person in ("member", "lead"):
        PairMember.objects.create(pair_set=found, reviewer=world.people[person])
    pair = Pair.objects.create(
        pair_set=found, external_id=CORPUS[1], position=1, question_text=ALL, reference=ALL,
        system_a=CORPUS[0], system_b=CORPUS[1], text_a=ALL, text_b=ALL,
    )  # fmt: skip
    for person in ("member", "lead"):
        inert(world, person, reverse("pair-list"))
        assert "onerror" in inert(world, person, reverse("pairs-rate", args=[found.pk]))
    prefer = reverse("pairs-prefer", args=[found.pk])
    inert(world, "member", prefer, pair=str(pair.pk), value=ALL, reason=ALL)
    inert(world, "member", prefer, pair=str(pair.pk), value="1", reason=ALL[:4000])
    assert "onerror" in inert(world, "member", f"{reverse('pairs-rate', args=[found.pk])}?pair={pair.pk}")
    inert(world, "lead", reverse("pairs", args=[found.pk]))
    inert(world, "lead", reverse("pair-new"), run_a=str(world.run.pk), name=ALL, guideline=ALL)
