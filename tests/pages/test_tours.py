"""The check that no page is left out of the browser tests sees one that is."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.pages.tours import NO_PAGES, addresses, forgotten
from tests.pages.world import make_world


@pytest.mark.django_db
def test_a_page_in_no_list_is_told_and_what_only_takes_forms_is_not() -> None:
    lead = make_world().people["lead"]
    left = set(forgotten([], lead))
    assert {"home", "my-ratings", "adjudication-rubric", "pairs-rate", "practice-example"} <= left
    assert not {"review-submit", "pairs-prefer", "queue-close", "keys-switch", "run-override", *NO_PAGES} & left
    assert "my-ratings" not in forgotten([reverse("my-ratings")], lead)
    assert set(NO_PAGES) <= {pattern.name for pattern in addresses()}
