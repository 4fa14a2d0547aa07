"""Hostile practice items stay text."""

from __future__ import annotations

import pytest
from django.urls import reverse

from contrib.practice.items import ExpectedRating, Passage, practice_items
from evaluation.core.metric_specs import Bilingual
from tests.pages.test_hostile_text import ALL_HOSTILE_TEXT, CORPUS
from tests.pages.test_hostile_text_of_criteria import inert_page, reviewed_run

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_practice_items_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile_text = Bilingual(en=ALL_HOSTILE_TEXT, ko=ALL_HOSTILE_TEXT)
    hostile = [
        item.model_copy(
            update={
                **dict.fromkeys(("question", "answer", "expected", "advice"), hostile_text),
                "passages": (Passage(source=hostile_text, text=hostile_text),),
                "ratings": {name: ExpectedRating(level=3, why=hostile_text) for name in item.ratings},
            }
        )
        for item in practice_items()
    ]
    monkeypatch.setattr("contrib.practice.views.practice_items", lambda: tuple(hostile))
    world = reviewed_run(CORPUS[:4])
    path = reverse("practice-example", args=[1])
    assert "onerror" in inert_page(world, "member", path)
    form = {f"value:{name}": "5" for name in hostile[0].ratings}
    assert "onerror" in inert_page(world, "member", path, **form)
    inert_page(world, "member", reverse("practice"))
