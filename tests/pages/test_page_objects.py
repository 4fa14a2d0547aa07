"""Each page's context holds one frozen object besides rows, and templates use no undefined variable."""

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
from tests.pages.markup import unsafe_markup
from tests.pages.world import World, make_world
from tests.test_access_matrix import QUERIES, address, routes

pytestmark = pytest.mark.django_db
NOT_OURS = {"login", "favicon"}  # a form of Django's, a file

ROLE_OUTCOMES = {
    **PAGES,
    **{rule: outcomes for rule, outcomes in merged("RULES").items() if not rule[1].startswith("api-")},
}


@pytest.fixture
def strict(settings: Any) -> None:
    """A variable that does not exist shows in the page instead of vanishing."""
    templates = copy.deepcopy(settings.TEMPLATES)
    templates[0]["OPTIONS"]["string_if_invalid"] = "NO SUCH VARIABLE %s"
    settings.TEMPLATES = templates


def open_pages(world: World) -> list[tuple[str, str, Any]]:
    """Open every page that answers a GET, as the roles that see most pages."""
    responses = []
    for route in routes():
        name = str(route.name)
        if ("GET", name) not in ROLE_OUTCOMES:
            continue
        for username in ("lead", "member"):
            response = world.client(username).get(
                address(world, name, str(route.pattern)), QUERIES.get(name, lambda w: {})(world)
            )
            if response.status_code == 200 and not response.streaming:  # an export is a file
                responses.append((name, username, response))
    return responses


def test_pages_follow_policy_and_use_frozen_objects_without_undefined_variables(strict: None) -> None:
    objects = 0
    for name, username, response in open_pages(make_world()):
        policy = response.headers["Content-Security-Policy"]
        assert "unsafe" not in policy, (name, username)
        assert "default-src 'none'" in policy
        assert unsafe_markup(response.content.decode()) == [], (name, username)
        if name in NOT_OURS or response.context is None:  # a file
            continue
        page = response.context.get("page")
        if page is not None:
            assert dataclasses.is_dataclass(page), name
            assert type(page).__dataclass_params__.frozen, name  # type: ignore[attr-defined]
            objects += 1
        assert "NO SUCH VARIABLE" not in response.content.decode(), (name, username)
    assert objects > 10


@pytest.mark.parametrize("state", first_fast([state.value for state in Run.State], 3))
def test_run_page_renders_in_every_state(strict: None, state: str) -> None:
    world = make_world()
    run = make_scored_run(world.run.answer_set, [1, None, 3], profile=profile_row(world.project, "graphrag"))
    make_units(run, 2)
    Run.objects.filter(pk=run.pk).update(state=state, reason="timeout" if state == "paused" else "")
    for name in ("run", "run-progress", "run-agreement"):
        page = world.client("lead").get(reverse(name, args=[run.pk]))
        assert page.status_code == 200
        assert "NO SUCH VARIABLE" not in page.content.decode(), name


def test_error_pages_are_custom() -> None:
    client = make_world().client("viewer")
    client.raise_request_exception = False
    assert "Page not found" in client.get("/nowhere/").content.decode()
    response = client.get(reverse("question-set-upload"))
    assert (response.status_code, "Your roles don't allow this" in response.content.decode()) == (403, True)
