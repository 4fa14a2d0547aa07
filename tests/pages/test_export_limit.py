"""Files that somebody may have made in an hour: beyond the limit a page or REST says when the next one can be had, and
others are not held up (A11). So with figures that programs have computed by REST."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import caches
from django.test import Client
from django.urls import reverse

from evaluation.models import CacheEntry, User
from tests.installed import merged
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
NOON = datetime.fromisoformat("2026-11-20T12:00:00+00:00")


@pytest.fixture
def world(settings: Any) -> World:
    settings.CONCORD_EXPORTS_PER_HOUR = 3
    settings.CONCORD_ANALYSES_PER_HOUR = 4
    return make_world()


def addresses(world: World) -> list[str]:
    """Every address that makes a file."""
    return [
        *(reverse(name, args=[world.queue.pk]) for name in ("queue-export", "api-queue-export")),
        *(reverse(name, args=[world.run.pk]) for name in ("run-report", "api-run-report")),
        *(reverse(name, args=[subject(world)]) for name, subject in merged("EXPORTS").items()),
    ]


def counted(scope: str) -> list[int]:
    """How many requests of each person count in the scope."""
    histories = (caches["shared"].get(f"throttle_{scope}_{pk}") for pk in User.objects.values_list("pk", flat=True))
    return [len(history) for history in histories if history is not None]


def statuses(client: Client, paths: list[str]) -> list[int]:
    return [client.get(path, {"format": "jsonl"}).status_code for path in paths]


def test_all_addresses_that_make_files_count_together_and_each_refuses_the_next_one(world: World) -> None:
    lead = world.client("lead")
    assert statuses(lead, [*addresses(world)[:3], *addresses(world)]) == [200, 200, 200, *[429] * 6]
    # what was refused does not count, or nobody who tries again would ever be let in
    assert counted("files") == [3]


def test_another_person_is_not_held_up(world: World) -> None:
    lead, admin = world.client("lead"), world.client("admin")
    path = addresses(world)[0]
    assert statuses(lead, [path] * 4)[-1] == 429
    assert statuses(admin, [path]) == [200]


def test_an_hour_after_the_oldest_of_them_the_next_one_is_made(world: World) -> None:
    lead, path = world.client("lead"), addresses(world)[2]
    with time_machine.travel(NOON, tick=False) as clock:
        for minutes in (0, 10, 10):
            clock.shift(timedelta(minutes=minutes))
            assert statuses(lead, [path]) == [200]  # at 12:00, 12:10 and 12:20
        clock.move_to(NOON + timedelta(minutes=30))
        refused: Any = lead.get(path, {"format": "jsonl"})
        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "1800"  # 13:00 - 12:30
        assert "in 30 min." in refused.content.decode()
        clock.move_to(NOON + timedelta(minutes=60))
        assert statuses(lead, [path, path]) == [200, 429]  # that of 12:00 is forgotten, that of 12:10 not yet


def test_the_page_says_it_in_the_language_of_the_person_and_rest_gives_a_code(world: World) -> None:
    lead = world.client("lead")
    page, rest = addresses(world)[0], addresses(world)[1]
    statuses(lead, [page] * 3)
    said = lead.get(page, headers={"accept-language": "en"})
    assert (said.status_code, "the limit of files within an hour (3)" in said.content.decode()) == (429, True)
    assert '<html lang="ko"' in lead.get(page, headers={"accept-language": "ko"}).content.decode()
    body = lead.get(rest, headers={"accept-language": "en"})
    assert body.json()["code"] == "too_many_exports"
    assert body.json()["detail"].startswith("You have reached")
    assert 0 < int(body.headers["Retry-After"]) <= 3600


def test_without_a_limit_nothing_is_counted(world: World, settings: Any) -> None:
    settings.CONCORD_EXPORTS_PER_HOUR = 0
    assert statuses(world.client("lead"), [addresses(world)[0]] * 5) == [200] * 5
    assert not CacheEntry.objects.exists()


def test_what_cannot_be_made_does_not_count(world: World) -> None:
    lead = world.client("lead")
    for path in addresses(world):
        assert lead.get(path, {"format": "docx"}).status_code in (400, 404)
    assert world.client("stranger").get(addresses(world)[0]).status_code == 404
    assert not CacheEntry.objects.exists()


def figures(world: World) -> list[str]:
    """Every address of REST that computes figures of a whole run, queue or comparison."""
    run = world.run.pk
    return [
        reverse("api-run-correction", args=[run]),
        f"{reverse('api-run-compare')}?runs={run}",
        reverse("api-queue-agreement", args=[world.queue.pk]),
        *(reverse(name, args=[subject(world)]) for name, subject in merged("FIGURES").items()),
        reverse("api-run-agreement", args=[run]),
    ]


def test_computed_figures_count_together_and_apart_from_files(world: World) -> None:
    lead = world.client("lead")
    paths = figures(world)
    assert [lead.get(path).status_code for path in paths] == [200, 200, 200, 200, 429]
    assert [lead.get(path).status_code for path in paths] == [429] * 5
    assert statuses(lead, [addresses(world)[3]]) == [200]
    assert [world.client("admin").get(path).status_code for path in paths] == [200, 200, 200, 200, 429]
    said = lead.get(paths[0], headers={"accept-language": "en"})
    assert said.json()["code"] == "too_many_figures"
    assert 0 < int(said.headers["Retry-After"]) <= 3600


def test_agreement_that_was_computed_before_does_not_count_and_another_seed_does(world: World) -> None:
    lead, path = world.client("lead"), figures(world)[-1]
    assert [lead.get(path).status_code for _ in range(9)] == [200] * 9
    assert counted("figures") == [1]
    assert [lead.get(path, {"seed": seed}).status_code for seed in range(1, 6)] == [200, 200, 200, 429, 429]
    assert lead.get(path).status_code == 200  # read, not computed


def test_refused_figures_do_not_count(world: World) -> None:
    lead = world.client("lead")
    assert lead.get(figures(world)[0], {"by": "moon"}).status_code == 400
    assert [world.client("stranger").get(path).status_code for path in figures(world)] == [404] * 5
    assert not CacheEntry.objects.exists()
