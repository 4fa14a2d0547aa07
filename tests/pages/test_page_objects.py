"""What a page has beside rows is one frozen object, and its template asks for nothing that is not there."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
from django.urls import reverse

from evaluation.judges.shipped import profile_row
from evaluation.models import Run
from tests.access_rules import PAGES
from tests.examples import first_fast
from tests.factories import make_scored_run, make_units
from tests.installed import merged
from tests.pages.markup import unsafe
from tests.pages.world import World, make_world
from tests.test_access_matrix import QUERIES, address, routes

pytestmark = pytest.mark.django_db
NOT_OURS = {"login", "favicon"}  # a form of Django's, a file

PAGE_RULES = {**PAGES, **{rule: who for rule, who in merged("RULES").items() if not rule[1].startswith("api-")}}


@pytest.fixture
def strict(settings: Any) -> None:
    """A variable that does not exist shows in the page instead of vanishing."""
    templates = copy.deepcopy(settings.TEMPLATES)
    templates[0]["OPTIONS"]["string_if_invalid"] = "NO SUCH VARIABLE %s"
    settings.TEMPLATES = templates


def opened(world: World) -> list[tuple[str, str, Any]]:
    """Every page that opens with a GET, as the person who sees most of it."""
    found = []
    for route in routes():
        name = str(route.name)
        if ("GET", name) not in PAGE_RULES:
            continue
        for person in ("lead", "member"):
            response = world.client(person).get(
                address(world, name, str(route.pattern)), QUERIES.get(name, lambda w: {})(world)
            )
            if response.status_code == 200 and not response.streaming:  # an export is a file
                found.append((name, person, response))
    return found


def test_every_page_keeps_to_the_policy_has_a_frozen_object_and_no_variable_without_value(strict: None) -> None:
    objects = 0
    for name, person, response in opened(make_world()):
        policy = response.headers["Content-Security-Policy"]
        assert "unsafe" not in policy, (name, person)
        assert "default-src 'none'" in policy
        assert unsafe(response.content.decode()) == [], (name, person)
        if name in NOT_OURS or response.context is None:  # a file
            continue
        page = response.context.get("page")
        if page is not None:
            assert dataclasses.is_dataclass(page), name
            assert type(page).__dataclass_params__.frozen, name  # type: ignore[attr-defined]
            objects += 1
        assert "NO SUCH VARIABLE" not in response.content.decode(), (name, person)
    assert objects > 10


@pytest.mark.parametrize("state", first_fast([state.value for state in Run.State], 3))
def test_the_run_page_is_whole_in_every_state(strict: None, state: str) -> None:
    world = make_world()
    run = make_scored_run(world.run.answer_set, [1, None, 3], profile=profile_row(world.project, "graphrag"))
    make_units(run, 2)
    Run.objects.filter(pk=run.pk).update(state=state, reason="timeout" if state == "paused" else "")
    for name in ("run", "run-progress", "run-agreement"):
        page = world.client("lead").get(reverse(name, args=[run.pk]))
        assert page.status_code == 200
        assert "NO SUCH VARIABLE" not in page.content.decode(), name


def test_errors_have_pages_of_their_own() -> None:
    client = make_world().client("viewer")
    client.raise_request_exception = False
    assert "There is nothing here" in client.get("/nowhere/").content.decode()
    refused = client.get(reverse("question-set-upload"))
    assert (refused.status_code, "Your roles do not allow this" in refused.content.decode()) == (403, True)
