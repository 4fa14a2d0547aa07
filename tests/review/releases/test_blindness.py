"""A queue of pairs tells its reviewer nothing of the second answer to a question, and is made once."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import DomainError
from evaluation.models import Run, User
from review.models import Draw, ReviewQueue
from review.releases.services import make_pair_queue
from review.reports.item_export import export_items
from tests.concurrency import WAITS, run_concurrently
from tests.factories import make_user
from tests.review.clients import Caller
from tests.review.releases.built import make_releases, rate_queue

pytestmark = pytest.mark.django_db


def half_rated_queue(rated: int = 8) -> tuple[ReviewQueue, User, list[int], list[Run]]:
    """A queue of 8 pairs with its reviewer and so many rated answers; the first 8 are to different questions."""
    old, new = make_releases(8, 2)
    reviewer = make_user("reviewer", new.project)
    queue = make_pair_queue(new, old, 8, [reviewer], seed=3)
    return queue, reviewer, rate_queue(queue, reviewer, lambda answer: 3, most=rated), [old, new]


def exported(queue: ReviewQueue, reviewer: User | None) -> list[dict[str, object]]:
    return [json.loads(line) for line in b"".join(export_items(queue, "jsonl", reviewer).chunks).splitlines()]


def test_reviewers_get_no_ids_of_answers() -> None:
    """Ids of one answer set follow each other, so that two of them tell the release of all."""
    queue, reviewer, answers, runs = half_rated_queue()
    rows = Caller(reviewer).get("ratings/").json()["results"]
    assert [row["answer"] for row in rows] == [None] * 8
    filters = [f"answer={answers[0]}", *(f"run={run.pk}" for run in runs)]
    assert [Caller(reviewer).get(f"ratings/?{one}").json()["results"] for one in filters] == [[], [], []]
    records = exported(queue, reviewer)
    assert [record["answer_id"] for record in records] == [None] * 8
    lead = make_user("lead", queue.project)
    assert {row["answer"] for row in Caller(lead).get("ratings/").json()["results"]} == set(answers)
    ReviewQueue.objects.update(state=ReviewQueue.State.CLOSED)
    # With the ids they can override what they rated.
    assert {row["answer"] for row in Caller(reviewer).get("ratings/").json()["results"]} == set(answers)


def test_rows_of_an_export_do_not_begin_with_the_older_release() -> None:
    queue, reviewer, _, _ = half_rated_queue(rated=16)
    keys = [str(record["item"]) for record in exported(queue, reviewer)]
    texts = [str(record["answer"]) for record in exported(queue, reviewer)]
    assert texts == [str(record["answer"]) for record in exported(queue, None)]
    assert len(keys) == 16
    assert {text.startswith("New: ") for text in texts[::2]} == {True, False}


def test_page_of_an_answer_waits_for_the_other_answer() -> None:
    """The page names the system and shows the judge."""
    queue, reviewer, answers, runs = half_rated_queue()
    client = Client()
    client.force_login(reviewer)
    caller, body = Caller(reviewer), {"metric": "correctness", "answers": answers, "value": 3, "dry_run": True}
    assert {client.get(reverse("answer", args=[pk])).status_code for pk in answers} == {404}
    assert {caller.post(f"runs/{run.pk}/override/", body).status_code for run in runs} == {404}
    override = {"metric": "correctness", "value": 3, "reason": "Why"}
    assert caller.post(f"answers/{answers[0]}/override/", override).status_code == 404
    rate_queue(queue, reviewer, lambda answer: 3)
    assert {client.get(reverse("answer", args=[pk])).status_code for pk in answers} == {200}


@WAITS
@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_two_leads_at_once_make_one_queue_of_pairs() -> None:
    old, new = make_releases(24, 6)
    people = [make_user("reviewer", new.project)]
    results = run_concurrently(*[lambda: make_pair_queue(new, old, 20, people) for _ in range(2)])
    assert [error.code for error in results if isinstance(error, DomainError)] == ["pairs_waiting"]
    assert Draw.objects.count() == 1
