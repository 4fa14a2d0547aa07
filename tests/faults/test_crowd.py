"""Fifty people empty a queue of 5,000 items that two of them rate each, over connections that break and a server that
is killed in the middle: nothing is lost, doubled or misdirected.

Other sizes: ``CROWD_PEOPLE=30 CROWD_ITEMS=3000 make test-crowd``.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.site import Site
from tests.review.people import empty_queues

pytestmark = [pytest.mark.crowd]


@pytest.mark.survives(
    "Fifty people, cut connections, forms sent twice, web server killed",
    happens="No item is lost, doubled or given to the wrong person.",
    see="A form sent twice is answered as the first time.",
)
def test_many_reviewers_finish_double_review_queue(site: Site) -> None:
    empty_queues(
        site, int(os.environ.get("CROWD_PEOPLE", "50")), {2: int(os.environ.get("CROWD_ITEMS", "5000"))}, rough=True
    )
