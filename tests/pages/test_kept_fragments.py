"""Cached fragments of the review screen: a page is independent of the pages that others opened."""

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


def set_english(assignment: Assignment) -> None:
    assignment.reviewer.language = "en"


def set_korean(assignment: Assignment) -> None:
    assignment.reviewer.language = "ko"


def set_other_keys(assignment: Assignment) -> None:
    assignment.reviewer.keymap = {"skip": "KeyQ"}


def disable_keys(assignment: Assignment) -> None:
    assignment.reviewer.keys_off = True


def save_a_draft(assignment: Assignment) -> None:
    save_draft(assignment, {"values": {"correctness": {"value": 4}}, "comment": "so far", "suggestion": ""})


def save_cannot_judge_draft(assignment: Assignment) -> None:
    verdict = {"cannot_judge": True, "reason_code": "not_my_field"}
    save_draft(assignment, {"values": {"correctness": verdict}, "comment": "", "suggestion": ""})


VARIANTS: list[Callable[[Assignment], None]] = [
    set_english,
    set_korean,
    set_other_keys,
    disable_keys,
    save_a_draft,
    save_cannot_judge_draft,
]


def screen(assignment: Assignment) -> str:
    """Return the page without parts that are new each time."""
    client = Client()
    client.force_login(assignment.reviewer)
    return CHANGING.sub("", client.get(reverse("review-item", args=[assignment.pk])).content.decode())


def test_cached_fragments_leak_nothing_between_reviewers_and_queues() -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=8)))
    pages: dict[int, str] = {}
    assignments: list[Assignment] = []
    for metrics in (["correctness", "faithfulness"], ["faithfulness"]):
        for change in VARIANTS:
            user = make_user(Role.REVIEWER, run.project)
            assignment = next_assignment(make_queue(run, [user], metrics=metrics), user)
            assert assignment
            assignment.reviewer = user
            change(assignment)
            user.save()
            assignments.append(assignment)
    for assignment in assignments:
        cache.clear()
        pages[assignment.pk] = screen(assignment)
    for assignment in [*assignments, *assignments]:  # the cache holds what all of them looked at
        assert screen(assignment) == pages[assignment.pk]
