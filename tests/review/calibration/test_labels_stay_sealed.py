"""A scripted evaluator and a scripted lead try for the labels of a hold-out by every address, export, command and
import, and by differences between figures. Leads get them by the recorded way alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.dateparse import parse_datetime

from evaluation.core.roles import Role
from evaluation.models import HoldOutOpening, ImportedJudge, Run, User
from review.calibration.versions import freeze
from review.evidence.effective import load_evidence
from review.evidence.seals import read_as
from review.models import CachedAgreement, CachedFigures, Rating
from tests.evaluation.rest.clients import Caller
from tests.factories import make_answer_set, make_question_set, make_user, question_spec
from tests.review.builders import answer_rows, imported_rating, run_over, score
from tests.review.calibration.addresses import body_of
from tests.review.calibration.world import ANSWERS, World, comment_of, value_of

pytestmark = pytest.mark.django_db
VOLATILE = re.compile(
    r'name="csrfmiddlewaretoken" value="[^"]*"|nonce="[^"]*"'
    r"|\b\d{4}-\d\d-\d\dT[\d:.]+(Z|\+\d\d:\d\d)?|\b\d\d?:\d\d(:\d\d)?\b|<dc(terms)?:[^/]*/dc"
)


def test_a_lead_gets_them_by_the_recorded_way(world: World) -> None:
    caller = Caller(Role.LEAD, world.project)
    opened = caller.post(f"gold-sets/{world.gold.pk}/open/")
    assert opened.status_code == 200, opened.content
    assert HoldOutOpening.objects.get().created_by == caller.user
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert world.labels_in(json.dumps(rows)) == set(range(ANSWERS))
    agreement = f"runs/{world.run.pk}/agreement/"
    assert caller.get(agreement, resamples=0).json()["judges"]["judge"]["quality"]["n"] == ANSWERS
    other = Caller(Role.LEAD, world.project)
    assert other.get(agreement, resamples=0).json()["judges"]["judge"]["quality"]["n"] == len(world.open)


def test_everybody_is_told_who_opened_and_when(world: World) -> None:
    lead = Caller(Role.LEAD, world.project)
    lead.post(f"gold-sets/{world.gold.pk}/open/")
    evaluator = Caller(Role.EVALUATOR, world.project)
    (row,) = evaluator.get(f"gold-sets/{world.gold.pk}/openings/").json()
    opening = HoldOutOpening.objects.get()
    assert (row["opened_by"], row["lineage"], row["ended_at"]) == (lead.user.username, "gold", None)
    assert parse_datetime(row["created_at"]) == opening.created_at
    assert Caller(Role.REVIEWER, world.project).get(f"gold-sets/{world.gold.pk}/openings/").status_code == 403
    out = StringIO()
    call_command("gold_set", "show", "gold", stdout=out)
    assert f"full figures opened by {lead.user.username} on {opening.created_at:%Y-%m-%d}" in out.getvalue()


def test_nobody_below_lead_opens_them(world: World) -> None:
    assert Caller(Role.EVALUATOR, world.project).post(f"gold-sets/{world.gold.pk}/open/").status_code == 403
    assert not HoldOutOpening.objects.exists()


def test_reviewers_read_their_own(world: World) -> None:
    caller = Caller(None, world.project, user=world.rater)
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert {row["value"] for row in rows} == {value_of(n) for n in range(ANSWERS)}


#: Pages and figures of a lead; others get most of them too.
FIGURES = [
    "/api/v1/runs/{run}/agreement/?resamples=0",
    "/api/v1/runs/{run}/agreement/?resamples=200&by=category",
    "/api/v1/runs/{run}/correction/",
    "/api/v1/runs/{run}/report/?format=json",
    "/api/v1/runs/{run}/answers/",
    "/api/v1/runs/compare/?runs={run},{again}",
    "/api/v1/review-queues/{queue}/agreement/",
    "/api/v1/review-queues/{queue}/items/",
    "/api/v1/adjudication/",
    "/api/v1/ratings/?run={run}&page_size=200",
    "/api/v1/ratings/?answer={locked}",
    "/api/v1/ratings/?metric=quality&reviewer={rater}",
]
PAGES = [
    "/",
    "/runs/",
    "/runs/{run}/",
    "/runs/{run}/answers/",
    "/runs/{run}/answers/?metric=quality&source=review",
    "/runs/{run}/answers/?metric=quality&low=0.3&high=0.42",
    "/runs/{run}/agreement/",
    "/runs/{run}/agreement/intervals/",
    "/runs/{run}/agreement/over-time/",
    "/runs/{run}/report/?format=html",
    "/runs/{run}/report/?format=csv",
    "/runs/{run}/report/?format=xlsx",
    "/runs/{run}/report/?format=md",
    "/runs/{run}/records/",
    "/runs/compare/?runs={run},{again}",
    "/runs/compare/answers/?runs={run},{again}&question={question}",
    "/answers/{locked}/?run={run}",
    "/question-sets/{questions}/quality/",
    "/judges/",
    "/search/?q=comment-on",
    "/adjudication/",
    "/adjudication/{item}/",
    "/queues/{queue}/",
    "/queues/{queue}/items/",
    "/queues/{queue}/people/",
    "/queues/{queue}/questions/",
    "/queues/{queue}/export/?format=csv",
    "/queues/{queue}/export/?format=jsonl",
    "/queues/{queue}/export/?format=xlsx",
]


def figures(world: World, again: Run, person: User, paths: Sequence[str]) -> dict[str, tuple[int, str]]:
    """What the addresses tell the person, without tokens and times of the day."""
    client = Client()
    client.force_login(person)
    locked = world.answers[world.locked[0]]
    subjects = {"run": world.run.pk, "again": again.pk, "queue": world.queue.pk, "locked": locked.pk}
    subjects |= {"item": world.queue.items.get(answer=locked).pk, "rater": world.rater.pk}
    subjects |= {"questions": world.run.answer_set.question_set_id, "question": locked.question.external_id}
    replies = {}
    for path in paths:
        # Both caches, so that the second look computes too.
        CachedFigures.objects.all().delete()
        CachedAgreement.objects.all().delete()
        replies[path] = client.get(path.format(**subjects))
    return {
        path: (reply.status_code, VOLATILE.sub("", body_of(reply).decode("utf-8", "replace")))
        for path, reply in replies.items()
    }


def said_by_commands(world: World, again: Run, path: Path) -> str:
    out = StringIO()
    run, other = str(world.run.pk), str(again.pk)
    for words in (
        ["results", run],
        ["agreement", run, "--format", "json", "--resamples", "0"],
        ["corrected_scores", run, "--format", "json"],
        ["compare", run, other],
        ["export_records", run, "--output", str(path / "records.jsonl")],
        ["gold_set", "show", "gold", "--format", "json"],
    ):
        call_command(*words, stdout=out)
    return out.getvalue() + (path / "records.jsonl").read_text(encoding="utf-8")


def isolating_run(world: World) -> Run:
    """A second run over the answers, with an imported judge that scored one locked answer alone."""
    again = run_over(world.run.answer_set, judged=False)
    score(again, world.answers[world.locked[0]], world.metric, 0.9, author="isolating")
    ImportedJudge.objects.create(run=again, metric=world.metric, author="isolating")
    Run.objects.filter(pk=again.pk).update(state=Run.State.COMPLETED)
    return again


@pytest.mark.slow
def test_no_figure_depends_on_a_locked_label(world: World, tmp_path: Path) -> None:
    """Neither a page, export or figure nor a difference of two: all stay as they are when every locked label becomes
    another."""
    again = isolating_run(world)
    paths = [*FIGURES, *PAGES]
    lead = make_user(Role.LEAD, world.project)
    before, commands = figures(world, again, lead, paths), said_by_commands(world, again, tmp_path)
    assert {status for status, _ in before.values()} == {200}
    assert set().union(*(world.labels_in(body) for _, body in before.values())) == set(world.open)
    world.tamper_with_locked_labels()
    after = figures(world, again, lead, paths)
    assert [path for path in paths if after[path] != before[path]] == []
    assert without_changes(said_by_commands(world, again, tmp_path)) == without_changes(commands)


@pytest.mark.slow
def test_no_figure_depends_on_further_ratings_of_locked_answers(world: World) -> None:
    again, person = isolating_run(world), make_user(Role.EVALUATOR, world.project)
    before = figures(world, again, person, FIGURES)
    world.change_locked_labels()
    assert figures(world, again, person, FIGURES) == before


def without_changes(text: str) -> str:
    """Without the places where a gold set was tampered with, which tell no label."""
    return re.sub(r'"changed": \[[^]]*\]', "", text)


def test_labels_of_equal_answers_to_another_version_of_the_questions_are_sealed(world: World) -> None:
    """The questions stay the same, and experts rate the same answers again."""
    specs = [question_spec(n) for n in range(ANSWERS + 1)]
    later = run_over(
        make_answer_set(make_question_set(world.project, specs), texts=[*world.texts, "Another one"]), judged=False
    )
    for number, answer in enumerate(answer_rows(later)[:ANSWERS]):
        imported_rating(answer, world.metric, "expert", value_of(number), comment=comment_of(number))
    caller = Caller(Role.EVALUATOR, world.project)
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert world.labels_in(json.dumps(rows)) == set(world.open)
    reply = caller.get(f"runs/{later.pk}/report/", format="jsonl")
    assert world.labels_in(body_of(reply).decode()) == set(world.open)


def test_ratings_of_a_locked_answer_without_a_text_are_not_carried(world: World) -> None:
    """Answers that only retrieved are equal by their passages, and are not sealed by their text."""
    questions = make_question_set(world.project, [question_spec(n) for n in range(ANSWERS)])
    first, later = (run_over(make_answer_set(questions, texts=[""] * ANSWERS), judged=False) for _ in range(2))
    for number, answer in enumerate(answer_rows(first)):
        imported_rating(answer, world.metric, "expert", value_of(number), sampling="all")
    assert len(load_evidence(later).carried) == ANSWERS
    silent = freeze(first, "silent", by=None)
    carried = {one.origin.answer_id for one in load_evidence(later).carried.values()}
    assert carried == set(silent.items.exclude(split="hold_out").values_list("answer", flat=True))


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
        call_command("corrected_scores", str(world.run.pk), stdout=StringIO())
