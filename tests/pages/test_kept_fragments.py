"""What the review screen renders once in a while: whatever others looked at, a page is what it would be alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from review.models import Assignment
from review.ratings.leases import next_assignment
from review.ratings.submitting import save_draft
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db
CHANGING = re.compile(r'(name="(?:form_key|csrfmiddlewaretoken)" value|data-lease)="\w*"')


def english(held: Assignment) -> None:
    held.reviewer.language = "en"


def korean(held: Assignment) -> None:
    held.reviewer.language = "ko"


def other_keys(held: Assignment) -> None:
    held.reviewer.keymap = {"skip": "KeyQ"}


def keys_off(held: Assignment) -> None:
    held.reviewer.keys_off = True


def a_draft(held: Assignment) -> None:
    save_draft(held, {"values": {"correctness": {"value": 4}}, "comment": "so far", "suggestion": ""})


def not_judged(held: Assignment) -> None:
    why = {"cannot_judge": True, "reason_code": "not_my_field"}
    save_draft(held, {"values": {"correctness": why}, "comment": "", "suggestion": ""})


KINDS: list[Callable[[Assignment], None]] = [english, korean, other_keys, keys_off, a_draft, not_judged]


def screen(held: Assignment) -> str:
    """The page without what is new each time."""
    client = Client()
    client.force_login(held.reviewer)
    return CHANGING.sub("", client.get(reverse("review-item", args=[held.pk])).content.decode())


def test_a_screen_shows_nothing_of_another_persons_or_queues() -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=8)))
    pages: dict[int, str] = {}
    everyone: list[Assignment] = []
    for metrics in (["correctness", "faithfulness"], ["faithfulness"]):
        for change in KINDS:
            user = make_user(Role.REVIEWER, run.project)
            held = next_assignment(make_queue(run, [user], metrics=metrics), user)
            assert held
            held.reviewer = user
            change(held)
            user.save()
            everyone.append(held)
    for held in everyone:
        cache.clear()
        pages[held.pk] = screen(held)
    for held in [*everyone, *everyone]:  # the cache holds what all of them looked at
        assert screen(held) == pages[held.pk]
