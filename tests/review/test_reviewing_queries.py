"""What a reviewer's steps ask the database, pinned: an item costs the same in a small queue and in a large one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from review.models import QueueMember, ReviewQueue
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run
from tests.review.clients import members

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
NEXT_JSON, SUBMIT_JSON = 11, 10
NEXT_HTML, PAGE, SUBMIT_HTML = 16, 9, 12


def queue_of(items: int) -> ReviewQueue:
    """A queue that two of three reviewers empty."""
    run = make_scored_run(make_answer_set(make_question_set(specs=items)))
    queue = make_queue(run, reviewers=3, reviews_needed=2)
    QueueMember.objects.filter(queue=queue).update(offset=0)  # nobody walks over the end, which asks once more
    return queue


def counted(step: Callable[[], object]) -> int:
    """Queries of a step."""
    with CaptureQueriesContext(connection) as found:
        step()
    return len(found)


@pytest.mark.parametrize("items", [8, 40])
def test_an_item_over_rest_asks_as_often_whatever_the_queue_holds(items: int) -> None:
    queue = queue_of(items)
    me, other = members(queue)[:2]
    other.submit(other.next(queue)["id"])
    me.submit(me.next(queue)["id"])
    assert counted(lambda: me.next(queue)) == NEXT_JSON
    item = me.next(queue)["id"]
    assert counted(lambda: me.submit(item, key="second")) == SUBMIT_JSON


@pytest.mark.parametrize("items", [8, 40])
def test_an_item_as_a_page_asks_as_often_whatever_the_queue_holds(items: int) -> None:
    cache.clear()
    queue = queue_of(items)
    client = Client()
    client.force_login(members(queue)[0].user)
    rated(client, queue)  # what is kept between requests
    assert rated(client, queue) == [NEXT_HTML, PAGE, SUBMIT_HTML]


def rated(client: Client, queue: ReviewQueue) -> list[int]:
    """Rate the next item by its page; the queries of the next item, of its own page and of the submit."""
    pages: list[str] = []
    taken = counted(lambda: pages.append(client.get(reverse("review-next", args=[queue.pk])).content.decode()))
    form = {
        "value:correctness": "3",
        "value:faithfulness": "4",
        "form_key": found(r'name="form_key" value="(\w+)"', pages),
    }
    place = found(r'data-item="(\S+)"', pages)
    shown = counted(lambda: client.get(place))
    submitted = counted(lambda: client.post(f"{place}submit/", form))
    return [taken, shown, submitted]


def found(pattern: str, pages: Sequence[str]) -> str:
    """What the last page has there."""
    match = re.search(pattern, pages[-1])
    assert match
    return match[1]
