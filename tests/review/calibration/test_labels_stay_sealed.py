"""A scripted evaluator and a scripted lead try for the labels of a hold-out by every address, export, command and
import, and by differences between figures. Leads get them by the recorded way alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import HoldOutOpening, ImportedJudge, Run, User
from review.evidence.seals import read_as
from review.gold.freezing import freeze
from review.models import GoldSet, Rating, ReviewQueue
from tests.evaluation.api.clients import Caller
from tests.factories import make_answer_set, make_project, make_question_set, make_user, question_spec
from tests.review.builders import (
    answer_rows,
    assignment_of,
    decide,
    imported_rating,
    metric,
    queue_for,
    rate,
    run_over,
    score,
)
from tests.review.calibration.test_hold_out_stays_sealed import addresses, unpacked

pytestmark = pytest.mark.django_db
ANSWERS = 24


class World:
    """Answers scored by an imported judge and rated by a reviewer and by an imported expert, whose comments name the
    answer, and a gold set over them."""

    def __init__(self) -> None:
        self.project = make_project()
        questions = make_question_set(self.project, [question_spec(n) for n in range(ANSWERS)])
        self.texts = [f"Answer number {n}" for n in range(ANSWERS)]
        self.run = run_over(make_answer_set(questions, texts=self.texts), judged=False)
        self.metric = metric("quality", "real 0..1")
        self.rater = make_user(Role.REVIEWER, self.project)
        self.queue: ReviewQueue = queue_for(self.run, [self.metric], [self.rater])
        for number, answer in enumerate(answer_rows(self.run)):
            score(self.run, answer, self.metric, 0.5 + number % 3 / 10, author="judge")
            given = rate(assignment_of(self.queue, answer, self.rater, self.run), self.metric, value_of(number))
            assert given.comment == ""
            imported_rating(answer, self.metric, "expert", value_of(number), comment=comment_of(number))
        ImportedJudge.objects.create(run=self.run, metric=self.metric, author="judge")
        Run.objects.filter(pk=self.run.pk).update(state=Run.State.COMPLETED)
        self.run.refresh_from_db()
        self.gold: GoldSet = freeze(self.run, "gold", by=None)
        held = set(self.gold.items.filter(split="hold_out").values_list("answer", flat=True))
        self.locked = [n for n, answer in enumerate(answer_rows(self.run)) if answer.pk in held]
        self.open = [n for n in range(ANSWERS) if n not in self.locked]
        self.answers = dict(enumerate(answer_rows(self.run)))

    def labels_in(self, body: str) -> set[int]:
        """The answers whose label stands in a text, by comment or by value."""
        return {n for n in range(ANSWERS) if comment_of(n) in body or f"{value_of(n)}" in body}

    def change_locked_labels(self) -> None:
        """Have all locked answers rated and decided otherwise."""
        for number in self.locked:
            imported_rating(self.answers[number], self.metric, "expert", 1.0 - value_of(number), comment="otherwise")
            imported_rating(self.answers[number], self.metric, "third", 0.0, comment="otherwise")
            decide(self.answers[number], self.metric, 1.0, "adjudication")


def value_of(number: int) -> float:
    return round(0.30617 + number / 100, 5)


def comment_of(number: int) -> str:
    return f"comment-on-{number}-here"


@pytest.fixture
def world() -> World:
    return World()


def bodies(world: World, person: User) -> Iterator[tuple[str, str]]:
    """What every address answers to the person, and every form of a report and an export."""
    client = Client()
    client.force_login(person)
    item = world.queue.items.get(answer=world.answers[world.locked[0]])
    subjects = {world.run.pk, world.answers[world.locked[0]].pk, world.gold.pk, world.queue.pk, item.pk}
    subjects |= {world.run.answer_set.question_set_id}
    asked = [
        address % pk if "%d" in address else address
        for address in sorted(set(addresses()))
        for pk in (sorted(subjects) if "%d" in address else [0])
        if "logout" not in address
    ]
    asked += [
        f"{reverse('run-report', args=[world.run.pk])}?format={form}" for form in ("json", "jsonl", "csv", "xlsx")
    ]
    asked += [f"{reverse('queue-export', args=[world.queue.pk])}?format={form}" for form in ("csv", "jsonl", "xlsx")]
    asked += [f"{reverse('search')}?q=comment-on", f"/api/v1/ratings/?page_size=200&run={world.run.pk}"]
    asked += [f"/api/v1/ratings/?page_size=200&answer={world.answers[n].pk}" for n in world.locked]
    for address in asked:
        reply = client.get(address)
        body = b"".join(reply.streaming_content) if reply.streaming else reply.content
        if reply.status_code == 200:
            yield address, unpacked(body).decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.parametrize("role", [Role.EVALUATOR, Role.LEAD, Role.VIEWER, Role.ADMIN])
def test_no_address_tells_a_locked_label(world: World, role: Role) -> None:
    seen: set[int] = set()
    for address, body in bodies(world, make_user(role, world.project)):
        found = world.labels_in(body)
        assert not found & set(world.locked), address
        seen |= found
    assert seen == set(world.open)  # what is open is told, so that the search finds what there is to find


def test_a_lead_gets_them_by_the_recorded_way(world: World) -> None:
    caller = Caller(Role.LEAD, world.project)
    opened = caller.post(f"gold-sets/{world.gold.pk}/open/")
    assert opened.status_code == 200, opened.content
    assert HoldOutOpening.objects.get().created_by == caller.user
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert world.labels_in(json.dumps(rows)) == set(range(ANSWERS))
    rubric = caller.get("rubrics/").json()["results"][:1]
    assert (
        caller.get(f"runs/{world.run.pk}/agreement/", resamples=0).json()["judges"]["judge"]["quality"]["n"] == ANSWERS
    )
    other = Caller(Role.LEAD, world.project)
    assert other.get(f"runs/{world.run.pk}/agreement/", resamples=0).json()["judges"]["judge"]["quality"]["n"] == len(
        world.open
    )
    assert rubric is not None


def test_nobody_below_lead_opens_them(world: World) -> None:
    assert Caller(Role.EVALUATOR, world.project).post(f"gold-sets/{world.gold.pk}/open/").status_code == 403
    assert not HoldOutOpening.objects.exists()


def test_reviewers_read_their_own(world: World) -> None:
    caller = Caller(None, world.project, user=world.rater)
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert {row["value"] for row in rows} == {value_of(n) for n in range(ANSWERS)}


FIGURES = [
    "runs/{run}/agreement/?resamples=0",
    "runs/{run}/agreement/?resamples=200&by=category",
    "runs/{run}/correction/",
    "runs/{run}/report/?format=json",
    "runs/{run}/compare/?with={again}",
    "queues/{queue}/agreement/",
    "gold-sets/{gold}/",
]


def figures(world: World, again: Run, person: User) -> dict[str, str]:
    caller = Caller(None, world.project, user=person)
    found = {}
    for path in FIGURES:
        reply = caller.get(path.format(run=world.run.pk, again=again.pk, queue=world.queue.pk, gold=world.gold.pk))
        body = b"".join(reply.streaming_content) if reply.streaming else reply.content
        found[path] = re.sub(r'"(made_at|exported_at|at|created_at)": ?"[^"]*"', "", body.decode())
    return found


def said_by_commands(world: World, again: Run, path: Path) -> str:
    out = StringIO()
    run, other = str(world.run.pk), str(again.pk)
    for words in (
        ["results", run],
        ["agreement", run, "--format", "json", "--resamples", "0"],
        ["correct", run, "--format", "json"],
        ["compare", run, other],
        ["export_records", run, "--output", str(path / "records.jsonl")],
        ["gold_set", "show", "gold", "--format", "json"],
    ):
        call_command(*words, stdout=out)
    return out.getvalue() + (path / "records.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("role", [Role.EVALUATOR, Role.LEAD])
def test_no_figure_depends_on_a_locked_label(world: World, role: Role, tmp_path: Path) -> None:
    """Neither a figure nor a difference of two: all stay as they are when every locked label becomes another."""
    again = run_over(world.run.answer_set, judged=False)
    score(again, world.answers[world.locked[0]], world.metric, 0.9, author="isolating")
    ImportedJudge.objects.create(run=again, metric=world.metric, author="isolating")
    Run.objects.filter(pk=again.pk).update(state=Run.State.COMPLETED)
    person = make_user(role, world.project)
    before = figures(world, again, person), said_by_commands(world, again, tmp_path)
    world.change_locked_labels()
    after = figures(world, again, person), said_by_commands(world, again, tmp_path)
    for path in FIGURES:
        assert after[0][path] == before[0][path], path
    assert after[1] == before[1]


def test_a_judge_that_isolates_one_answer_learns_nothing(world: World) -> None:
    """An imported judge with a score of one locked answer alone agrees with nobody."""
    caller = Caller(Role.EVALUATOR, world.project)
    row = {"question_id": world.answers[world.locked[0]].question.external_id, "metric": "quality", "value": 0.5}
    line = json.dumps(row | {"rater": "judge", "author": "isolating"}).encode()
    assert caller.upload("ratings/", line, "one.jsonl", run=world.run.pk).status_code == 201
    told = caller.get(f"runs/{world.run.pk}/agreement/", resamples=0).json()["judges"]
    assert told["isolating"]["quality"]["n"] == 0


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_imports_do_not_tell_whether_a_rating_is_there(world: World, dry_run: str) -> None:
    """Offering the right value for a locked answer is answered like offering a wrong one."""
    caller = Caller(Role.EVALUATOR, world.project)

    def told(number: int, value: float) -> dict[str, int]:
        row = {"question_id": world.answers[number].question.external_id, "metric": "quality", "value": value}
        line = json.dumps(row | {"rater": "human", "author": "expert", "reason": comment_of(number)}).encode()
        options = {"run": world.run.pk, "dry_run": dry_run}
        found: dict[str, int] = caller.upload("ratings/", line, "one.jsonl", **options).json()
        return {name: found[name] for name in ("human", "unchanged")}

    number = world.locked[0]
    assert told(number, 0.9) == {"human": 1, "unchanged": 0}
    assert told(number, 0.9) == {"human": 1, "unchanged": 0}
    if dry_run == "false":
        assert Rating.objects.filter(answer=world.answers[number], value=0.9).count() == 1
        assert told(world.open[0], 0.9)["human"] == 1
        assert told(world.open[0], 0.9) == {"human": 0, "unchanged": 1}


def test_ratings_carried_to_an_equal_answer_stay_sealed(world: World) -> None:
    """An evaluator imports equal answers, to which ratings are carried."""
    later = run_over(make_answer_set(world.run.answer_set.question_set, texts=world.texts), judged=False)
    for answer in answer_rows(later):
        score(later, answer, world.metric, 0.5, author="judge")
    Run.objects.filter(pk=later.pk).update(state=Run.State.COMPLETED)
    caller = Caller(Role.EVALUATOR, world.project)
    reply = caller.get(f"runs/{later.pk}/report/", format="jsonl")
    body = b"".join(reply.streaming_content) if reply.streaming else reply.content
    assert world.labels_in(body.decode()) == set(world.open)


def test_opening_is_per_person_and_figures_are_cached_per_form(world: World) -> None:
    """A page that a lead with the full form looked at first tells others the open form."""
    opener = Caller(Role.LEAD, world.project)
    opener.post(f"gold-sets/{world.gold.pk}/open/")
    path = f"runs/{world.run.pk}/correction/"
    full, opened = opener.get(path).json(), Caller(Role.EVALUATOR, world.project).get(path).json()
    assert full != opened
    assert opener.get(path).json() == full
    with read_as(lambda: opener.user):
        call_command("correct", str(world.run.pk), stdout=StringIO())
