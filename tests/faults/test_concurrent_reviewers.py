"""People empty queues over HTTP at once: no item is lost, doubled, or seen by the wrong person.

A real server with several threads, real sockets, and each of the two databases. Fifty people and 5,000 items are
``make test-crowd``.
"""

from __future__ import annotations

import pytest

from tests.faults.site import Site
from tests.review.people import empty_queues


@pytest.mark.slow
def test_few_reviewers_finish_two_queues_with_exactly_once_ratings(site: Site) -> None:
    empty_queues(site, 4, {1: 24, 2: 12})


@pytest.mark.faults
@pytest.mark.survives(
    "Twelve people rating two queues at once",
    happens="No item is lost, doubled or given to the wrong person.",
    see="Both queues end with the planned ratings.",
)
def test_twelve_reviewers_finish_two_queues_with_exactly_once_ratings(site: Site) -> None:
    empty_queues(site, 12, {1: 300, 2: 150})
