"""Attacks on the labels of a hold-out by differences: all that people and commands are told stays as it is when every
locked label becomes another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.db.models import F
from django.urls import get_resolver, reverse
from django.utils import timezone

from evaluation.core.roles import Role
from evaluation.models import JudgeVersion, Project
from evaluation.storage import append_only
from review.calibration.searching import _Going, open_search
from review.calibration.workbench import Wanted, bench_of, disagreements, history
from review.gold.freezing import freeze, grow
from review.gold.opening import open_hold_outs
from review.gold.overview import overview, shown_items
from review.models import GoldItem, GoldSet, ReviewQueue, Search
from review.queues.directing import remind_all
from review.statistics.gold_split import Split
from tests.evaluation.api.clients import Caller
from tests.factories import make_answer_set, make_user
from tests.review.builders import answer_rows, imported_rating, metric, run_over, score
from tests.review.calibration.place import Place
from tests.review.calibration.test_hold_out_stays_sealed import addresses, unpacked
from tests.review.calibration.test_labels_stay_sealed import ANSWERS, World, comment_of, value_of
from tests.review.gold.labelled import FAMILY

pytestmark = pytest.mark.django_db
VOLATILE = re.compile(
    r'name="csrfmiddlewaretoken" value="[^"]*"|nonce="[^"]*"'
    r"|\b\d{4}-\d\d-\d\dT[\d:.]+(Z|\+\d\d:\d\d)?|\b\d\d?:\d\d(:\d\d)?\b"
)


@pytest.fixture
def world() -> World:
    return World()


def settled(body: bytes) -> str:
    return VOLATILE.sub("", unpacked(body).decode("utf-8", "replace"))


def test_versions_of_a_gold_set_and_their_differences_tell_no_locked_label(world: World) -> None:
    """What is locked stays locked as the gold set grows, and no figure of a version rests on it."""
    later = run_over(
        make_answer_set(world.run.answer_set.question_set, texts=[f"Later {n}" for n in range(ANSWERS)]), judged=False
    )
    for number, answer in enumerate(answer_rows(later)):
        imported_rating(answer, world.metric, "expert", value_of(number), sampling="all")
        imported_rating(answer, world.metric, "other", value_of(number) + 0.01, sampling="all")
    grown = grow(later, "gold", by=None)
    of_first = set(world.gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    assert of_first <= set(grown.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))

    caller = Caller(Role.EVALUATOR, world.project)

    def shown() -> list[str]:
        paths = [f"gold-sets/{one.pk}/{more}" for one in (world.gold, grown) for more in ("", "items/", "hold-out/")]
        return [settled(caller.get(path).content) for path in paths]

    before = shown()
    change_items(world.gold, grown)
    assert [drop_changes(body) for body in shown()] == [drop_changes(body) for body in before]
    answers = {row["answer_id"] for one in (world.gold, grown) for row in shown_items(one)}
    assert not answers & of_first


def drop_changes(body: str) -> str:
    """Without the list of labels that were tampered with, which names places and no values."""
    return re.sub(r'"changed": ?\[[^]]*\]', "", body)


def change_items(*gold_sets: GoldSet) -> None:
    with append_only.suspended():
        rows = GoldItem.objects.filter(gold_set__in=gold_sets, split=Split.HOLD_OUT)
        rows.update(label=6 - F("label"), ratings=[[1, 0.1], [2, 0.9]])


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_what_another_gold_set_locks_is_not_told_by_the_first(world: World, seed: int, tmp_path: Path) -> None:
    """Two gold sets of the same answers lock different ones; neither tells labels that the other one locks."""
    second = freeze(world.run, "second", by=None, seed=seed)
    locked = set(GoldItem.objects.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    for one in (world.gold, second):
        assert {row["answer_id"] for row in shown_items(one)} == set(
            one.items.values_list("answer", flat=True)
        ) - locked
        path = tmp_path / f"{one.name}.jsonl"
        call_command("gold_set", "export", one.name, "--output", str(path), stdout=StringIO())
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert not {row["answer_id"] for row in rows} & locked
    before = [overview(one).metrics for one in (world.gold, second)]
    with append_only.suspended():
        GoldItem.objects.filter(answer__in=locked).update(ratings=[[1, 0.1], [2, 0.9]])
    assert [overview(one).metrics for one in (world.gold, second)] == before


def test_reminders_tell_no_label(world: World, settings: Any) -> None:
    """A reminder names the queue and how many answers are left, before and after labels become others."""
    settings.CONCORD_MAIL, settings.CONCORD_REMIND_HOURS = {"EMAIL_BACKEND": "anything"}, [24]
    newcomer = make_user(Role.REVIEWER, world.project)
    type(newcomer).objects.filter(pk=newcomer.pk).update(email="newcomer@example.org")
    world.queue.members.create(reviewer=newcomer)
    deadline = timezone.now() + timedelta(hours=2)
    ReviewQueue.objects.filter(pk=world.queue.pk).update(deadline=deadline)
    assert remind_all().sent == 1
    world.change_locked_labels()
    world.queue.reminders.all().delete()
    assert remind_all().sent == 1
    first, second = (f"{one.subject}\n{one.body}" for one in mail.outbox)
    assert first == second
    assert not world.labels_in(first)


def test_no_address_gives_a_backup() -> None:
    """Backups are made and read by whoever administers the server; files are readable by that account alone."""
    assert not [one for one in addresses(get_resolver()) if re.search("backup|restore|dump|sqlite|database", one)]


class Measured(Place):
    """Validation and examples judged by the version in force, so that there are maps, disagreements and figures."""

    def __init__(self) -> None:
        super().__init__(120)
        row = metric("correctness")
        active = self.slot.active
        judged = run_over(self.run.answer_set, judge=self.judge)
        for number, answer in enumerate(answer_rows(judged)):
            score(judged, answer, row, 1 + number % 5, judge_version=self.judge, rubric_version=active)


@pytest.mark.parametrize(
    "told",
    [
        lambda gold, judge: _disagreements(gold, judge),
        lambda gold, judge: [repr(one.measures) for one in history(bench_of(gold, judge, FAMILY))],
        lambda gold, judge: _maps(gold, judge),
    ],
    ids=["disagreements", "history", "maps"],
)
def test_the_workbench_tells_nothing_of_locked_labels(told: Callable[[GoldSet, JudgeVersion], list[str]]) -> None:
    """Lists of disagreements, the history of versions and fitted maps rest on open labels alone."""
    place = Measured()
    before = told(place.gold, place.judge)
    assert before
    change_items(place.gold)
    assert told(place.gold, place.judge) == before
    with append_only.suspended():
        GoldItem.objects.exclude(split=Split.HOLD_OUT).update(label=6 - F("label"))
    assert told(place.gold, place.judge) != before


def _disagreements(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    bench = bench_of(gold, judge, FAMILY)
    rows = disagreements(bench, bench.active, Wanted())
    locked = set(gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    assert not {one.item.answer_id for one in rows} & locked
    return [f"{one.item.answer_id} {one.item.label} {one.given.value}" for one in rows]


def _maps(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    search = Search.objects.first() or open_search(gold, judge, FAMILY, "map", by=None)
    found = _Going(search)._mapped(["correctness"])
    return [repr(one.score_map) for one in found.metrics if one.name == "correctness"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EVALUATOR, Role.REVIEWER])
def test_nobody_below_lead_opens_by_page(world: World, role: Role) -> None:
    caller = Caller(role, world.project)
    caller.client.force_login(caller.user)
    assert caller.client.post(reverse("calibration-open", args=[world.gold.pk])).status_code in {403, 404}


def test_commands_read_the_open_form_even_after_a_lead_opened(world: World, tmp_path: Path) -> None:
    """Opening is for the pages and tokens of one person; what the shell writes can be passed on and stays open."""
    open_hold_outs(Project.objects.get(pk=world.project.pk), by=make_user(Role.LEAD, world.project))
    out, path = StringIO(), tmp_path / "records.jsonl"
    call_command("export_records", str(world.run.pk), "--output", str(path), stdout=StringIO())
    call_command("agreement", str(world.run.pk), "--format", "json", "--resamples", "0", stdout=out)
    assert world.labels_in(path.read_text(encoding="utf-8")) == set(world.open)
    assert json.loads(out.getvalue())["judges"]["judge"]["quality"]["n"] == len(world.open)
    assert not any(comment_of(n) in out.getvalue() for n in world.locked)
