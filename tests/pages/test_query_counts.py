"""Pinned numbers of database queries of each page: they do not grow with the rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.extensions import is_installed
from review.ratings.leases import next_assignment
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user
from tests.installed import merged
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db


def world_with_more_rows(world: World) -> None:
    """Twice as many answers, two more runs and reviewers, and some ratings."""
    questions = make_question_set(world.project, 14)
    for _ in range(2):
        run = make_scored_run(make_answer_set(questions))
        reviewers = [make_user(Role.REVIEWER, world.project) for _ in range(2)]
        queue = make_queue(run, [*reviewers, world.people["lead"], world.people["member"]])
        next_assignment(queue, reviewers[0])


def count_queries(world: World, person: str, url: str) -> int:
    """Count the queries of the second request, after the first has filled the caches."""
    client = world.client(person)
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


def count_after_first_view(world: World, person: str, url: str) -> int:
    """The number of queries of a page that was seen before: the first view records which judge's values it showed."""
    count_queries(world, person, url)
    return count_queries(world, person, url)


PAGES: dict[str, tuple[str, Callable[[World], str], int]] = {
    "home of a lead": ("lead", lambda w: reverse("home"), 25),
    "runs": ("lead", lambda w: reverse("run-list"), 10),
    "run": ("lead", lambda w: reverse("run", args=[w.run.pk]), 15),
    "answers of a run": ("lead", lambda w: reverse("run-answers", args=[w.run.pk]), 24),
    "progress": ("lead", lambda w: reverse("run-progress", args=[w.run.pk]), 17),
    "agreement": ("lead", lambda w: reverse("run-agreement", args=[w.run.pk]), 24),
    "answer": ("lead", lambda w: reverse("answer", args=[w.answer.pk]), 29),
    "queues for a lead": ("lead", lambda w: reverse("queue-list"), 10),
    "queues for a member": ("member", lambda w: reverse("queue-list"), 8),
    "home of a member": ("member", lambda w: reverse("home"), 16),
    "queue for a lead": ("lead", lambda w: reverse("queue", args=[w.queue.pk]), 12),
    "people of a queue": ("lead", lambda w: reverse("queue-people", args=[w.queue.pk]), 13),
    "items of a queue": ("lead", lambda w: reverse("queue-items", args=[w.queue.pk]), 11),
    "questions of a queue": ("lead", lambda w: reverse("queue-questions", args=[w.queue.pk]), 9),
    "item": ("member", lambda w: reverse("review-item", args=[w.assignment.pk]), 9),
    "intervals": ("lead", lambda w: reverse("intervals"), 3),
    "score over releases": ("lead", lambda w: reverse("run-standing", args=[w.run.pk]), 15),
    "retrieval of a run": ("lead", lambda w: reverse("run-retrieval", args=[w.run.pk]), 11),
    "judges": ("lead", lambda w: reverse("judge-list"), 15),
    "judge": ("lead", lambda w: reverse("judge", args=[w.run.judges.get().judge_version_id]), 17),
    "gold sets": ("lead", lambda w: reverse("calibration-list"), 6),
    "question sets": ("lead", lambda w: reverse("question-set-list"), 5),
    "question set": ("lead", lambda w: reverse("question-set", args=[w.question_set.pk]), 10),
    "quality of a question set": ("lead", lambda w: reverse("set-quality", args=[w.question_set.pk]), 12),
    "search": ("lead", lambda w: reverse("search") + "?q=a", 6),
    **merged("PAGES"),
}


@pytest.mark.parametrize("name", list(PAGES))
@pytest.mark.slow
def test_query_count_is_independent_of_row_count(name: str) -> None:
    person, url, expected_count = PAGES[name]
    cache.clear()
    world = make_world()
    world_with_more_rows(world)
    count_small = count_after_first_view(world, person, url(world))
    world_with_more_rows(world)
    assert count_after_first_view(world, person, url(world)) == count_small
    # Each of these features adds queries to pages of the core.
    complete = all(map(is_installed, ("attacks", "corpora", "pairs", "retrieval_truth")))
    assert count_small == expected_count if complete else count_small <= expected_count
