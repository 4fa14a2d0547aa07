"""Hourly limits of exports per user: beyond the limit, page and REST say when the next one is possible, and other users
are not affected. The limit of computed figures by REST works alike."""

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


def export_addresses(world: World) -> list[str]:
    """Every address that makes a file."""
    return [
        *(reverse(name, args=[world.queue.pk]) for name in ("queue-export", "api-queue-export")),
        *(reverse(name, args=[world.run.pk]) for name in ("run-report", "api-run-report")),
        *(reverse(name, args=[subject(world)]) for name, subject in merged("EXPORTS").items()),
    ]


def counted_requests(scope: str) -> list[int]:
    """Return the number of counted requests in the scope, for each user with any."""
    histories = (caches["shared"].get(f"throttle_{scope}_{pk}") for pk in User.objects.values_list("pk", flat=True))
    return [len(history) for history in histories if history is not None]


def statuses(client: Client, paths: list[str]) -> list[int]:
    return [client.get(path, {"format": "jsonl"}).status_code for path in paths]


def test_all_exports_share_one_limit(world: World) -> None:
    lead = world.client("lead")
    assert statuses(lead, [*export_addresses(world)[:3], *export_addresses(world)]) == [200, 200, 200, *[429] * 6]
    # what was refused does not count, or nobody who tries again would ever be let in
    assert counted_requests("files") == [3]


def test_limit_counts_each_user_separately(world: World) -> None:
    lead, admin = world.client("lead"), world.client("admin")
    path = export_addresses(world)[0]
    assert statuses(lead, [path] * 4)[-1] == 429
    assert statuses(admin, [path]) == [200]


def test_limit_is_a_sliding_hour(world: World) -> None:
    lead, path = world.client("lead"), export_addresses(world)[2]
    with time_machine.travel(NOON, tick=False) as clock:
        for minutes in (0, 10, 10):
            clock.shift(timedelta(minutes=minutes))
            assert statuses(lead, [path]) == [200]  # at 12:00, 12:10 and 12:20
        clock.move_to(NOON + timedelta(minutes=30))
        response: Any = lead.get(path, {"format": "jsonl"})
        assert response.status_code == 429
        assert response.headers["Retry-After"] == "1800"  # 13:00 - 12:30
        assert "in 30 min." in response.content.decode()
        clock.move_to(NOON + timedelta(minutes=60))
        assert statuses(lead, [path, path]) == [200, 429]  # that of 12:00 is forgotten, that of 12:10 not yet


def test_limit_error_is_translated_and_rest_gives_a_code(world: World) -> None:
    lead = world.client("lead")
    page, rest_path = export_addresses(world)[0], export_addresses(world)[1]
    statuses(lead, [page] * 3)
    response = lead.get(page, headers={"accept-language": "en"})
    assert (response.status_code, "the limit of 3 files per hour" in response.content.decode()) == (429, True)
    assert '<html lang="ko"' in lead.get(page, headers={"accept-language": "ko"}).content.decode()
    body = lead.get(rest_path, headers={"accept-language": "en"})
    assert body.json()["code"] == "too_many_exports"
    assert body.json()["detail"].startswith("You have reached")
    assert 0 < int(body.headers["Retry-After"]) <= 3600


def test_without_limit_nothing_is_counted(world: World, settings: Any) -> None:
    settings.CONCORD_EXPORTS_PER_HOUR = 0
    assert statuses(world.client("lead"), [export_addresses(world)[0]] * 5) == [200] * 5
    assert not CacheEntry.objects.exists()


def test_failed_exports_are_not_counted(world: World) -> None:
    lead = world.client("lead")
    for path in export_addresses(world):
        assert lead.get(path, {"format": "docx"}).status_code in (400, 404)
    assert world.client("stranger").get(export_addresses(world)[0]).status_code == 404
    assert not CacheEntry.objects.exists()


def figure_addresses(world: World) -> list[str]:
    """Every address of REST that computes figures of a whole run, queue or comparison."""
    run = world.run.pk
    return [
        reverse("api-run-correction", args=[run]),
        f"{reverse('api-run-compare')}?runs={run}",
        reverse("api-queue-agreement", args=[world.queue.pk]),
        *(reverse(name, args=[subject(world)]) for name, subject in merged("FIGURES").items()),
        reverse("api-run-agreement", args=[run]),
    ]


def test_computed_figures_share_a_limit_separate_from_exports(world: World) -> None:
    lead = world.client("lead")
    paths = figure_addresses(world)
    assert [lead.get(path).status_code for path in paths] == [200, 200, 200, 200, 429]
    assert [lead.get(path).status_code for path in paths] == [429] * 5
    assert statuses(lead, [export_addresses(world)[3]]) == [200]
    assert [world.client("admin").get(path).status_code for path in paths] == [200, 200, 200, 200, 429]
    response = lead.get(paths[0], headers={"accept-language": "en"})
    assert response.json()["code"] == "too_many_figures"
    assert 0 < int(response.headers["Retry-After"]) <= 3600


def test_only_uncached_agreement_counts(world: World) -> None:
    lead, path = world.client("lead"), figure_addresses(world)[-1]
    assert [lead.get(path).status_code for _ in range(9)] == [200] * 9
    assert counted_requests("figures") == [1]
    assert [lead.get(path, {"seed": seed}).status_code for seed in range(1, 6)] == [200, 200, 200, 429, 429]
    assert lead.get(path).status_code == 200  # read, not computed


def test_refused_figure_requests_are_not_counted(world: World) -> None:
    lead = world.client("lead")
    assert lead.get(figure_addresses(world)[0], {"by": "moon"}).status_code == 400
    assert [world.client("stranger").get(path).status_code for path in figure_addresses(world)] == [404] * 5
    assert not CacheEntry.objects.exists()
