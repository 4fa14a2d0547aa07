"""A GET on the address of an action, as after a reload of what it showed, leads to the page of its object."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.pages.world import make_world

pytestmark = pytest.mark.django_db


def test_get_on_an_action_leads_to_its_object() -> None:
    world = make_world()
    lead = world.client("lead")
    targets = {
        reverse("answer-override", args=[world.answer.pk]): reverse("answer", args=[world.answer.pk]),
        reverse("queue-close", args=[world.queue.pk]): reverse("queue", args=[world.queue.pk]),
        reverse("run-start", args=[world.run.pk]): reverse("run", args=[world.run.pk]),
    }
    for address, target in targets.items():
        response = lead.get(address)
        assert (response.status_code, response.headers["Location"]) == (302, target)
        assert lead.get(target).status_code == 200
        assert lead.put(address).status_code == 405


def test_get_on_an_action_asks_strangers_to_log_in() -> None:
    world = make_world()
    address = reverse("queue-close", args=[world.queue.pk])
    assert world.client("anonymous").get(address).headers["Location"].startswith("/login/")
