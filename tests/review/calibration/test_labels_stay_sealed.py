"""A scripted evaluator and lead try to read hold-out labels by every URL, export, command, import and difference.
Only the recorded opening reveals them to leads."""

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


def test_lead_reads_labels_after_the_recorded_opening(world: World) -> None:
    caller = Caller(Role.LEAD, world.project)
    opening = caller.post(f"gold-sets/{world.gold.pk}/open/")
    assert opening.status_code == 200, opening.content
    assert HoldOutOpening.objects.get().created_by == caller.user
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert world.labels_in(json.dumps(rows)) == set(range(ANSWERS))
    agreement = f"runs/{world.run.pk}/agreement/"
    assert caller.get(agreement, resamples=0).json()["judges"]["judge"]["quality"]["n"] == ANSWERS
    second_lead = Caller(Role.LEAD, world.project)
    assert second_lead.get(agreement, resamples=0).json()["judges"]["judge"]["quality"]["n"] == len(world.unlocked)


def test_everyone_sees_who_opened_the_holdout_and_when(world: World) -> None:
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


def test_roles_below_lead_cannot_open_the_holdout(world: World) -> None:
    assert Caller(Role.EVALUATOR, world.project).post(f"gold-sets/{world.gold.pk}/open/").status_code == 403
    assert not HoldOutOpening.objects.exists()


def test_reviewers_read_their_own_ratings(world: World) -> None:
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


def read_figures(world: World, second_run: Run, person: User, paths: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Responses of the URLs for this person, without tokens and times of day."""
    client = Client()
    client.force_login(person)
    locked = world.answers[world.locked[0]]
    subjects = {"run": world.run.pk, "again": second_run.pk, "queue": world.queue.pk, "locked": locked.pk}
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


def command_output(world: World, second_run: Run, path: Path) -> str:
    out = StringIO()
    run, second_pk = str(world.run.pk), str(second_run.pk)
    for words in (
        ["results", run],
        ["agreement", run, "--format", "json", "--resamples", "0"],
        ["corrected_scores", run, "--format", "json"],
        ["compare", run, second_pk],
        ["export_records", run, "--output", str(path / "records.jsonl")],
        ["gold_set", "show", "gold", "--format", "json"],
    ):
        call_command(*words, stdout=out)
    return out.getvalue() + (path / "records.jsonl").read_text(encoding="utf-8")


def isolating_run(world: World) -> Run:
    """Create a second run over the answers whose imported judge scored one locked answer only."""
    second_run = run_over(world.run.answer_set, judged=False)
    score(second_run, world.answers[world.locked[0]], world.metric, 0.9, author="isolating")
    ImportedJudge.objects.create(run=second_run, metric=world.metric, author="isolating")
    Run.objects.filter(pk=second_run.pk).update(state=Run.State.COMPLETED)
    return second_run


@pytest.mark.slow
def test_no_figure_depends_on_a_locked_label(world: World, tmp_path: Path) -> None:
    """Pages, exports, figures and their differences stay equal when every locked label changes."""
    second_run = isolating_run(world)
    paths = [*FIGURES, *PAGES]
    lead = make_user(Role.LEAD, world.project)
    figures_before, commands = read_figures(world, second_run, lead, paths), command_output(world, second_run, tmp_path)
    assert {status for status, _ in figures_before.values()} == {200}
    assert set().union(*(world.labels_in(body) for _, body in figures_before.values())) == set(world.unlocked)
    world.tamper_with_locked_labels()
    figures_after = read_figures(world, second_run, lead, paths)
    assert [path for path in paths if figures_after[path] != figures_before[path]] == []
    assert drop_changes(command_output(world, second_run, tmp_path)) == drop_changes(commands)


@pytest.mark.slow
def test_no_figure_depends_on_further_ratings_of_locked_answers(world: World) -> None:
    second_run, person = isolating_run(world), make_user(Role.EVALUATOR, world.project)
    figures_before = read_figures(world, second_run, person, FIGURES)
    world.change_locked_labels()
    assert read_figures(world, second_run, person, FIGURES) == figures_before


def drop_changes(text: str) -> str:
    """Remove the list of changed labels, which reveals no label."""
    return re.sub(r'"changed": \[[^]]*\]', "", text)


def test_labels_of_equal_answers_in_another_question_set_version_are_sealed(world: World) -> None:
    """The questions stay equal, and experts rate the equal answers again."""
    specs = [question_spec(n) for n in range(ANSWERS + 1)]
    later_run = run_over(
        make_answer_set(make_question_set(world.project, specs), texts=[*world.texts, "Another one"]), judged=False
    )
    for number, answer in enumerate(answer_rows(later_run)[:ANSWERS]):
        imported_rating(answer, world.metric, "expert", value_of(number), comment=comment_of(number))
    caller = Caller(Role.EVALUATOR, world.project)
    rows = caller.get("ratings/", page_size=200).json()["results"]
    assert world.labels_in(json.dumps(rows)) == set(world.unlocked)
    reply = caller.get(f"runs/{later_run.pk}/report/", format="jsonl")
    assert world.labels_in(body_of(reply).decode()) == set(world.unlocked)


def test_ratings_of_a_locked_answer_without_text_are_not_carried(world: World) -> None:
    """Answers without text are equal by their passages, so the text seal does not cover them."""
    questions = make_question_set(world.project, [question_spec(n) for n in range(ANSWERS)])
    first_run, later_run = (run_over(make_answer_set(questions, texts=[""] * ANSWERS), judged=False) for _ in range(2))
    for number, answer in enumerate(answer_rows(first_run)):
        imported_rating(answer, world.metric, "expert", value_of(number), sampling="all")
    assert len(load_evidence(later_run).carried) == ANSWERS
    gold = freeze(first_run, "silent", by=None)
    carried_answers = {rating.origin.answer_id for rating in load_evidence(later_run).carried.values()}
    assert carried_answers == set(gold.items.exclude(split="hold_out").values_list("answer", flat=True))


def test_judge_that_scores_one_locked_answer_gets_no_agreement(world: World) -> None:
    """An imported judge with a score of one locked answer has nothing to be compared with."""
    caller = Caller(Role.EVALUATOR, world.project)
    row = {"question_id": world.answers[world.locked[0]].question.external_id, "metric": "quality", "value": 0.5}
    line = json.dumps(row | {"rater": "judge", "author": "isolating"}).encode()
    assert caller.upload("ratings/", line, "one.jsonl", run=world.run.pk).status_code == 201
    judges = caller.get(f"runs/{world.run.pk}/agreement/", resamples=0).json()["judges"]
    assert judges["isolating"]["quality"]["n"] == 0


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_imports_do_not_reveal_whether_a_rating_exists(world: World, dry_run: str) -> None:
    """Offering the correct value for a locked answer gets the response of a wrong one."""
    caller = Caller(Role.EVALUATOR, world.project)

    def import_counts(number: int, value: float) -> dict[str, int]:
        row = {"question_id": world.answers[number].question.external_id, "metric": "quality", "value": value}
        line = json.dumps(row | {"rater": "human", "author": "expert", "reason": comment_of(number)}).encode()
        options = {"run": world.run.pk, "dry_run": dry_run}
        counts: dict[str, int] = caller.upload("ratings/", line, "one.jsonl", **options).json()
        return {name: counts[name] for name in ("human", "unchanged")}

    number = world.locked[0]
    assert import_counts(number, 0.9) == {"human": 1, "unchanged": 0}
    assert import_counts(number, 0.9) == {"human": 1, "unchanged": 0}
    if dry_run == "false":
        assert Rating.objects.filter(answer=world.answers[number], value=0.9).count() == 1
        assert import_counts(world.unlocked[0], 0.9)["human"] == 1
        assert import_counts(world.unlocked[0], 0.9) == {"human": 0, "unchanged": 1}


def test_ratings_carried_to_an_equal_answer_stay_sealed(world: World) -> None:
    """An evaluator imports equal answers, to which ratings are carried."""
    later_run = run_over(make_answer_set(world.run.answer_set.question_set, texts=world.texts), judged=False)
    for answer in answer_rows(later_run):
        score(later_run, answer, world.metric, 0.5, author="judge")
    Run.objects.filter(pk=later_run.pk).update(state=Run.State.COMPLETED)
    caller = Caller(Role.EVALUATOR, world.project)
    reply = caller.get(f"runs/{later_run.pk}/report/", format="jsonl")
    body = b"".join(reply.streaming_content) if reply.streaming else reply.content
    assert world.labels_in(body.decode()) == set(world.unlocked)


def test_opening_is_per_person_and_figures_are_cached_per_form(world: World) -> None:
    """A page first computed for a lead with the full form shows others the open form."""
    opener = Caller(Role.LEAD, world.project)
    opener.post(f"gold-sets/{world.gold.pk}/open/")
    path = f"runs/{world.run.pk}/correction/"
    full, open_form = opener.get(path).json(), Caller(Role.EVALUATOR, world.project).get(path).json()
    assert full != open_form
    assert opener.get(path).json() == full
    with read_as(lambda: opener.user):
        call_command("corrected_scores", str(world.run.pk), stdout=StringIO())
