"""The check that no page is left out of the browser tests sees one that is."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.pages.tours import NO_PAGES, addresses, uncovered_pages
from tests.pages.world import make_world


@pytest.mark.django_db
def test_uncovered_pages_are_reported_except_post_only_ones() -> None:
    lead = make_world().people["lead"]
    uncovered = set(uncovered_pages([], lead))
    assert {"home", "my-ratings", "adjudication-rubric", "pairs-rate", "practice-example"} <= uncovered
    assert not {"review-submit", "pairs-prefer", "queue-close", "keys-switch", "run-override", *NO_PAGES} & uncovered
    assert "my-ratings" not in uncovered_pages([reverse("my-ratings")], lead)
    assert set(NO_PAGES) <= {pattern.name for pattern in addresses()}
