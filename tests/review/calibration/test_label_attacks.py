"""Differencing attacks on hold-out labels: visible output must not change when every locked label changes."""

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
from tests.review.calibration.addresses import addresses, unpack
from tests.review.calibration.labelled import FAMILY
from tests.review.calibration.place import CalibrationSetup
from tests.review.calibration.world import ANSWERS, World, comment_of, value_of

pytestmark = pytest.mark.django_db
VOLATILE = re.compile(
    r'name="csrfmiddlewaretoken" value="[^"]*"|nonce="[^"]*"'
    r"|\b\d{4}-\d\d-\d\dT[\d:.]+(Z|\+\d\d:\d\d)?|\b\d\d?:\d\d(:\d\d)?\b"
)


def normalize(body: bytes) -> str:
    return VOLATILE.sub("", unpack(body).decode("utf-8", "replace"))


@pytest.mark.slow
def test_gold_set_versions_and_their_differences_reveal_no_locked_label(world: World) -> None:
    """Locked answers stay locked as the gold set grows, and no figure of a version rests on them."""
    later_run = run_over(
        make_answer_set(world.run.answer_set.question_set, texts=[f"Later {n}" for n in range(ANSWERS)]), judged=False
    )
    for number, answer in enumerate(answer_rows(later_run)):
        imported_rating(answer, world.metric, "expert", value_of(number), sampling="all")
        imported_rating(answer, world.metric, "other", value_of(number) + 0.01, sampling="all")
    grown_gold = grow(later_run, "gold", by=None)
    first_holdout = set(world.gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    assert first_holdout <= set(grown_gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))

    caller = Caller(Role.EVALUATOR, world.project)

    def read_pages() -> list[str]:
        paths = [
            f"gold-sets/{gold.pk}/{suffix}"
            for gold in (world.gold, grown_gold)
            for suffix in ("", "items/", "hold-out/")
        ]
        return [normalize(caller.get(path).content) for path in paths]

    pages_before = read_pages()
    change_items(world.gold, grown_gold)
    assert [drop_changes(body) for body in read_pages()] == [drop_changes(body) for body in pages_before]
    answers = {row["answer_id"] for gold in (world.gold, grown_gold) for row in readable_labels(gold)}
    assert not answers & first_holdout


def drop_changes(body: str) -> str:
    """Remove the list of changed labels, which names places and no values."""
    return re.sub(r'"changed": ?\[[^]]*\]', "", body)


def change_items(*gold_sets: GoldSet) -> None:
    with append_only.suspended():
        rows = GoldItem.objects.filter(gold_set__in=gold_sets, split=Split.HOLD_OUT)
        rows.update(label=6 - F("label"), ratings=[[1, 0.1], [2, 0.9]])


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_gold_set_reveals_no_label_locked_by_another(world: World, seed: int, tmp_path: Path) -> None:
    """Two gold sets lock different answers; neither reveals labels that the other one locks."""
    second = freeze(world.run, "second", by=None, seed=seed)
    locked = set(GoldItem.objects.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    for gold in (world.gold, second):
        assert {row["answer_id"] for row in readable_labels(gold)} == set(
            gold.items.values_list("answer", flat=True)
        ) - locked
        path = tmp_path / f"{gold.name}.jsonl"
        call_command("gold_set", "export", gold.name, "--output", str(path), stdout=StringIO())
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert not {row["answer_id"] for row in rows} & locked
    metrics_before = [overview(gold).metrics for gold in (world.gold, second)]
    with append_only.suspended():
        GoldItem.objects.filter(answer__in=locked).update(ratings=[[1, 0.1], [2, 0.9]])
    assert [overview(gold).metrics for gold in (world.gold, second)] == metrics_before


def test_reminders_reveal_no_label(world: World, settings: Any) -> None:
    """A reminder names the queue and the number of open answers, whatever the labels are."""
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
    first, second = (f"{message.subject}\n{message.body}" for message in mail.outbox)
    assert first == second
    assert not world.labels_in(first)


def test_no_url_serves_a_backup() -> None:
    """Only the server's administrator creates and reads backups."""
    assert not [url for url in addresses(get_resolver()) if re.search("backup|restore|dump|sqlite|database", url)]


class JudgedSetup(CalibrationSetup):
    """A setup whose open answers the active version has judged, so that maps, disagreements and figures exist."""

    def __init__(self) -> None:
        super().__init__(120)
        self.judged_run = run_over(self.run.answer_set, judge=self.judge)
        self.score_answers_by(self.statuses.active)

    def score_answers_by(self, version: RubricVersion) -> None:
        row, fields = metric("correctness"), {"judge_version": self.judge, "rubric_version": version, "by": version.pk}
        answers = enumerate(answer_rows(self.judged_run))
        scores = [score_row(self.judged_run, answer, row, 1 + number % 5, **fields) for number, answer in answers]
        Score.objects.bulk_create(scores)


@pytest.fixture(scope="module")
def prepared_measured(module_db: None) -> JudgedSetup:
    return JudgedSetup()


@pytest.fixture
def measured(prepared_measured: JudgedSetup, db: None) -> JudgedSetup:
    return deepcopy(prepared_measured)


def _disagreement_lines(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    workbench = load_workbench(gold, judge, FAMILY)
    rows = disagreements(workbench, workbench.active, DisagreementFilter())
    locked = set(gold.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True))
    assert not {row.item.answer_id for row in rows} & locked
    return [f"{row.item.answer_id} {row.item.label} {row.score.value}" for row in rows]


def _history_lines(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    return [repr(row.measures) for row in version_history(load_workbench(gold, judge, FAMILY))]


def _map_lines(gold: GoldSet, judge: JudgeVersion) -> list[str]:
    search = Search.objects.first() or open_search(gold, judge, FAMILY, "map", by=None)
    rubric = SearchRunner(search)._mapped_rubric(["correctness"])
    return [repr(metric_rubric.score_map) for metric_rubric in rubric.metrics if metric_rubric.name == "correctness"]


@pytest.mark.parametrize("list_lines", [_disagreement_lines, _history_lines, _map_lines])
def test_workbench_reveals_no_locked_label(
    measured: JudgedSetup, list_lines: Callable[[GoldSet, JudgeVersion], list[str]]
) -> None:
    """Disagreements, version history and fitted maps rest on open labels only."""
    lines_before = list_lines(measured.gold, measured.judge)
    assert lines_before
    change_items(measured.gold)
    assert list_lines(measured.gold, measured.judge) == lines_before
    with append_only.suspended():
        GoldItem.objects.exclude(split=Split.HOLD_OUT).update(label=6 - F("label"))
    assert list_lines(measured.gold, measured.judge) != lines_before


def test_forecast_excludes_answers_locked_by_another_gold_set(measured: JudgedSetup) -> None:
    """Active versions have judged all answers, so their losses would reveal labels of the other set."""
    version = measured.create_draft("SKILLED")
    measured.score_answers_by(version)
    (single_forecast,) = forecast_holdout_test(measured.gold, measured.judge, version)
    validation = set(measured.gold.items.filter(split=Split.VALIDATION).values_list("answer", flat=True))
    assert single_forecast.validation == len(validation)
    second = freeze(measured.run, "second", by=None, seed=5)
    locked = second.items.filter(split=Split.HOLD_OUT).values_list("answer", flat=True)
    forecast_before = forecast_holdout_test(measured.gold, measured.judge, version)
    assert forecast_before[0].validation == len(validation - set(locked)) < len(validation)
    with append_only.suspended():
        GoldItem.objects.filter(answer__in=locked).update(label=6 - F("label"))
    assert forecast_holdout_test(measured.gold, measured.judge, version) == forecast_before


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_splits_of_a_second_gold_set_reveal_no_label_sealed_by_the_first(world: World, seed: int) -> None:
    """A lead could freeze a set with many seeds and solve for the labels that determine the split."""

    def freeze_and_roll_back() -> dict[int, str]:
        with transaction.atomic():
            second_gold = freeze(world.run, "second", by=None, seed=seed)
            rows = dict(second_gold.items.values_list("answer", "split"))
            transaction.set_rollback(True)
        return rows

    splits_before = freeze_and_roll_back()
    world.tamper_with_locked_labels()
    assert freeze_and_roll_back() == splits_before


def test_suggested_answers_for_locked_ones_are_sealed(world: World) -> None:
    """A suggested answer implies a low rating of the original."""
    lead = make_user(Role.LEAD, world.project)
    client = Client()
    client.force_login(lead)
    pages = {}
    for number in (world.locked[0], world.unlocked[0]):
        assignment = assignment_of(world.queue, world.answers[number], world.rater, world.run)
        SuggestedAnswer.objects.create(assignment=assignment, text=f"Rather say {number}")
        pages[number] = reverse("adjudication-case", args=[assignment.item_id])

    def visible_suggestions() -> list[int]:
        return [number for number, page in pages.items() if f"Rather say {number}" in client.get(page).content.decode()]

    assert visible_suggestions() == [world.unlocked[0]]
    open_hold_outs(Project.objects.get(pk=world.project.pk), by=lead)
    assert visible_suggestions() == [world.locked[0], world.unlocked[0]]


@pytest.mark.parametrize("fixture", first_fast(["world", "measured"], 1))
def test_page_shows_who_opened_the_holdout_and_hides_the_button(fixture: str, request: pytest.FixtureRequest) -> None:
    """With and without a judge. Other leads may still open it, and a new gold set has to be opened again."""
    place = request.getfixturevalue(fixture)
    project, url = place.gold.project, reverse("calibration", args=[place.gold.pk])
    opener, second_lead, evaluator = (make_user(role, project) for role in (Role.LEAD, Role.LEAD, Role.EVALUATOR))

    def page(person: User) -> str:
        client = Client()
        client.force_login(person)
        return client.get(url).content.decode()

    button, notice = reverse("calibration-open", args=[place.gold.pk]), "Full figures opened by"
    assert button in page(opener)
    assert notice not in page(evaluator)
    open_hold_outs(project, by=opener)
    assert button not in page(opener)
    assert button in page(second_lead)
    assert all(
        notice in page(person) and opener.display_name in page(person) for person in (opener, second_lead, evaluator)
    )
    if fixture == "measured":
        draft = reverse("calibration-draft", args=[place.gold.pk])
        assert "You opened the full figures of gold." in page(opener)
        assert draft not in page(opener)
        assert draft in page(second_lead)
    freeze(place.run, "second", by=None, seed=5)
    assert button in page(opener)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EVALUATOR, Role.REVIEWER])
def test_roles_below_lead_cannot_open_the_holdout_by_page(world: World, role: Role) -> None:
    caller = Caller(role, world.project)
    caller.client.force_login(caller.user)
    assert caller.client.post(reverse("calibration-open", args=[world.gold.pk])).status_code in {403, 404}


def test_commands_use_open_labels_even_after_a_lead_opened_the_holdout(world: World, tmp_path: Path) -> None:
    """Opening applies to one person's pages and tokens; shell output can be passed on and stays open-form."""
    open_hold_outs(Project.objects.get(pk=world.project.pk), by=make_user(Role.LEAD, world.project))
    out, path = StringIO(), tmp_path / "records.jsonl"
    call_command("export_records", str(world.run.pk), "--output", str(path), stdout=StringIO())
    call_command("agreement", str(world.run.pk), "--format", "json", "--resamples", "0", stdout=out)
    assert world.labels_in(path.read_text(encoding="utf-8")) == set(world.unlocked)
    assert json.loads(out.getvalue())["judges"]["judge"]["quality"]["n"] == len(world.unlocked)
    assert not any(comment_of(n) in out.getvalue() for n in world.locked)
