"""Attacks on the labels of a hold-out by differences: all that people and commands are told stays as it is when every
locked label becomes another."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import transaction
from django.db.models import F
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from evaluation.core.roles import Role
from evaluation.models import JudgeVersion, Project, RubricVersion, Score, User
from evaluation.storage import append_only
from review.calibration.holdout_rules import forecast_holdout_test
from review.calibration.openings import open_hold_outs
from review.calibration.overview import overview, readable_labels
from review.calibration.search import SearchRunner, open_search
from review.calibration.versions import freeze, grow
from review.calibration.workbench import DisagreementFilter, disagreements, load_workbench, version_history
from review.models import GoldItem, GoldSet, ReviewQueue, Search, SuggestedAnswer
from review.queues.reassignment import remind_all
from review.statistics.gold_split import Split
from tests.evaluation.rest.clients import Caller
from tests.examples import first_fast
from tests.factories import make_answer_set, make_user
from tests.review.builders import answer_rows, assignment_of, imported_rating, metric, run_over, score_row
from tests.review.calibration.addresses import addresses, unpacked
from tests.review.calibration.labelled import FAMILY
from tests.review.calibration.place import Place
from tests.review.calibration.world import ANSWERS, World, comment_of, value_of

pytestmark = pytest.mark.django_db
VOLATILE = re.compile(
    r'name="csrfmiddlewaretoken" value="[^"]*"|nonce="[^"]*"'
    r"|\b\d{4}-\d\d-\d\dT[\d:.]+(Z|\+\d\d:\d\d)?|\b\d\d?:\d\d(:\d\d)?\b"
)


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
    answers = {row["answer_id"] for one in (world.gold, grown) for row in readable_labels(one)}
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
        assert {row["answer_id"] for row in readable_labels(one)} == set(
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
        self.judged = run_over(self.run.answer_set, judge=self.judge)
        self.judge_by(self.slot.active)

    def judge_by(self, version: RubricVersion) -> None:
        row, by = metric("correctness"), {"judge_version": self.judge, "rubric_version": version, "by": version.pk}
        answers = enumerate(answer_rows(self.judged))
        scores = [score_row(self.judged, answer, row, 1 + number % 5, **by) for number, answer in answers]
        Score.objects.bulk_create(scores)


@pytest.fixture(scope="module")
def prepared_measured(module_db: None) -> Measured:
    return Measured()


@pytest.fixture
def measured(prepared_measured: Measured, db: None) -> Measured:
    return deepcopy(prepared_measured)


def _disagreements(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    bench = load_workbench(gold, judge, FAMILY)
    rows = disagreements(bench, bench.active, DisagreementFilter())
    locked = set(gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    assert not {one.item.answer_id for one in rows} & locked
    return [f"{one.item.answer_id} {one.item.label} {one.score.value}" for one in rows]


def _history(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    return [repr(one.measures) for one in version_history(load_workbench(gold, judge, FAMILY))]


def _maps(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    search = Search.objects.first() or open_search(gold, judge, FAMILY, "map", by=None)
    rubric = SearchRunner(search)._mapped_rubric(["correctness"])
    return [repr(one.score_map) for one in rubric.metrics if one.name == "correctness"]


@pytest.mark.parametrize("told", [_disagreements, _history, _maps])
def test_the_workbench_tells_nothing_of_locked_labels(
    measured: Measured, told: Callable[[GoldSet, JudgeVersion], list[str]]
) -> None:
    """Lists of disagreements, the history of versions and fitted maps rest on open labels alone."""
    before = told(measured.gold, measured.judge)
    assert before
    change_items(measured.gold)
    assert told(measured.gold, measured.judge) == before
    with append_only.suspended():
        GoldItem.objects.exclude(split=Split.HOLD_OUT).update(label=6 - F("label"))
    assert told(measured.gold, measured.judge) != before


def test_a_forecast_leaves_out_what_another_gold_set_locks(measured: Measured) -> None:
    """Versions that were in force have judged all answers, and their losses would tell labels of the other set."""
    version = measured.drafted("SKILLED")
    measured.judge_by(version)
    (alone,) = forecast_holdout_test(measured.gold, measured.judge, version)
    validation = set(measured.gold.items.filter(split=Split.VALIDATION).values_list("answer", flat=True))
    assert alone.validation == len(validation)
    second = freeze(measured.run, "second", by=None, seed=5)
    locked = second.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True)
    before = forecast_holdout_test(measured.gold, measured.judge, version)
    assert before[0].validation == len(validation - set(locked)) < len(validation)
    with append_only.suspended():
        GoldItem.objects.filter(answer__in=locked).update(label=6 - F("label"))
    assert forecast_holdout_test(measured.gold, measured.judge, version) == before


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_parts_of_a_second_gold_set_tell_no_label_that_the_first_one_seals(world: World, seed: int) -> None:
    """A lead could freeze a set by many seeds and solve for the labels by which answers were divided."""

    def parts() -> dict[int, str]:
        with transaction.atomic():
            made = freeze(world.run, "second", by=None, seed=seed)
            rows = dict(made.items.values_list("answer", "split"))
            transaction.set_rollback(True)
        return rows

    before = parts()
    world.tamper_with_locked_labels()
    assert parts() == before


def test_answers_that_experts_suggested_for_locked_ones_are_sealed(world: World) -> None:
    """Whoever suggests another answer thinks little of this one."""
    lead = make_user(Role.LEAD, world.project)
    client = Client()
    client.force_login(lead)
    pages = {}
    for number in (world.locked[0], world.open[0]):
        assignment = assignment_of(world.queue, world.answers[number], world.rater, world.run)
        SuggestedAnswer.objects.create(assignment=assignment, text=f"Rather say {number}")
        pages[number] = reverse("adjudication-case", args=[assignment.item_id])

    def told() -> list[int]:
        return [number for number, page in pages.items() if f"Rather say {number}" in client.get(page).content.decode()]

    assert told() == [world.open[0]]
    open_hold_outs(Project.objects.get(pk=world.project.pk), by=lead)
    assert told() == [world.locked[0], world.open[0]]


@pytest.mark.parametrize("fixture", first_fast(["world", "measured"], 1))
def test_the_page_tells_who_opened_and_offers_it_no_more(fixture: str, request: pytest.FixtureRequest) -> None:
    """With and without a judge to work with; others still may open, and a further gold set has to be opened again."""
    place = request.getfixturevalue(fixture)
    project, at = place.gold.project, reverse("calibration", args=[place.gold.pk])
    opener, other, evaluator = (make_user(role, project) for role in (Role.LEAD, Role.LEAD, Role.EVALUATOR))

    def page(person: User) -> str:
        client = Client()
        client.force_login(person)
        return client.get(at).content.decode()

    button, told = reverse("calibration-open", args=[place.gold.pk]), "Full figures opened"
    assert button in page(opener)
    assert told not in page(evaluator)
    open_hold_outs(project, by=opener)
    assert button not in page(opener)
    assert button in page(other)
    assert all(told in page(person) and opener.display_name in page(person) for person in (opener, other, evaluator))
    if fixture == "measured":
        draft = reverse("calibration-draft", args=[place.gold.pk])
        assert "You opened the full figures of gold." in page(opener)
        assert draft not in page(opener)
        assert draft in page(other)
    freeze(place.run, "second", by=None, seed=5)
    assert button in page(opener)


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
