"""Query counts of a reviewer's steps: equal in small and large queues."""

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


def query_count(step: Callable[[], object]) -> int:
    """Queries of a step."""
    with CaptureQueriesContext(connection) as queries:
        step()
    return len(queries)


@pytest.mark.parametrize("items", [8, 40])
def test_rest_item_costs_the_same_queries_in_every_queue(items: int) -> None:
    queue = queue_of(items)
    me, colleague = members(queue)[:2]
    colleague.submit(colleague.next(queue)["id"])
    me.submit(me.next(queue)["id"])
    assert query_count(lambda: me.next(queue)) == NEXT_JSON
    item = me.next(queue)["id"]
    assert query_count(lambda: me.submit(item, key="second")) == SUBMIT_JSON


@pytest.mark.parametrize("items", [8, 40])
def test_page_item_costs_the_same_queries_in_every_queue(items: int) -> None:
    cache.clear()
    queue = queue_of(items)
    client = Client()
    client.force_login(members(queue)[0].user)
    rate_by_page(client, queue)  # what is kept between requests
    assert rate_by_page(client, queue) == [NEXT_HTML, PAGE, SUBMIT_HTML]


def rate_by_page(client: Client, queue: ReviewQueue) -> list[int]:
    """Rate the next item by its page; return the queries of the next item, its page and the submit."""
    pages: list[str] = []
    next_queries = query_count(
        lambda: pages.append(client.get(reverse("review-next", args=[queue.pk])).content.decode())
    )
    form = {
        "value:correctness": "3",
        "value:faithfulness": "4",
        "form_key": last_page_match(r'name="form_key" value="(\w+)"', pages),
    }
    path = last_page_match(r'data-item="(\S+)"', pages)
    page_queries = query_count(lambda: client.get(path))
    submit_queries = query_count(lambda: client.post(f"{path}submit/", form))
    return [next_queries, page_queries, submit_queries]


def last_page_match(pattern: str, pages: Sequence[str]) -> str:
    """First group of the pattern in the last page."""
    match = re.search(pattern, pages[-1])
    assert match
    return match[1]
