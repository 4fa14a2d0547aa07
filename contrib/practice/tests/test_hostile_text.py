"""Practice items are only ever text, whatever their authors wrote."""

from __future__ import annotations

import pytest
from django.urls import reverse

from contrib.practice.items import ExpectedRating, Passage, practice_items
from evaluation.core.metric_specs import Bilingual
from tests.pages.test_hostile_text import ALL, CORPUS
from tests.pages.test_hostile_text_of_criteria import inert, reviewed

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_practice_items_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Bilingual(en=ALL, ko=ALL)
    hostile = [
        one.model_copy(
            update={
                **dict.fromkeys(("question", "answer", "expected", "advice"), both),
                "passages": (Passage(source=both, text=both),),
                "ratings": {name: ExpectedRating(level=3, why=both) for name in one.ratings},
            }
        )
        for one in practice_items()
    ]
    monkeypatch.setattr("contrib.practice.views.practice_items", lambda: tuple(hostile))
    world = reviewed(CORPUS[:4])
    path = reverse("practice-example", args=[1])
    assert "onerror" in inert(world, "member", path)
    said = {f"value:{name}": "5" for name in hostile[0].ratings}
    assert "onerror" in inert(world, "member", path, **said)
    inert(world, "member", reverse("practice"))
