"""Fifty people empty a queue of 5,000 items that two of them rate each: nothing is lost, doubled or misdirected."""

from __future__ import annotations

import pytest

from tests.faults.site import Site
from tests.review.people import empty_queues

pytestmark = [pytest.mark.crowd]


def test_fifty_people_empty_a_queue_of_5000_items_with_two_reviewers_each(site: Site) -> None:
    empty_queues(site, 50, {2: 5_000})
