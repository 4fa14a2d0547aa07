"""A3: before the rating is in, nothing a reviewer can get over REST tells what the judge said, or who was judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern

from evaluation.models import Context, MetricDefinition, Run, Score
from review.api_urls import urlpatterns
from review.evidence.carried import carried_ratings
from review.models import ReviewQueue
from tests.factories import (
    make_answer_set,
    make_judge,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
    question_spec,
)
from tests.review.builders import imported_rating
from tests.review.clients import Caller, members

pytestmark = pytest.mark.django_db

VALUE, SCORE, RATED = 0.73517, 0.86421, 0.62138
SECRETS = ("SECRETJUDGE", "SECRETMODEL", "SECRETREASON", "SECRETSYSTEM", "SECRETRUN", "73517", "86421", "stratified")
SECRETS += ("SECRETRATER", "SECRETCOMMENT", "62138", "carried")


def secret_run() -> Run:
    """A run in which everything that is to be hidden is recognisable, what was said of equal answers too."""
    project = make_project()
    asked = make_question_set(project, [question_spec(n, category="plain") for n in range(1, 11)])
    earlier, answers = make_answer_set(asked, system="SECRETSYSTEM 1"), make_answer_set(asked, system="SECRETSYSTEM")
    Context.objects.bulk_create(
        Context(answer=answer, position=1, text="A second passage.", score=SCORE, source="book")
        for answer in (*earlier.answers.all(), *answers.answers.all())
    )
    judge = make_judge(project, name="SECRETJUDGE", model="SECRETMODEL")
    run = make_scored_run(answers, reason="SECRETREASON", judge=judge, name="SECRETRUN")
    close = MetricDefinition.objects.create(name="closeness", version=1, kind="judge", scale="real 0..1")
    Score.objects.bulk_create(
        Score(
            run=run,
            answer=answer,
            metric=close,
            origin=f"{answer.pk:064d}",
            judge_version=judge,
            rubric_version=run.judges.get().rubric_version,
            status="scored",
            value=VALUE,
            reason="SECRETREASON",
        )
        for answer in answers.answers.all()
    )
    for answer in earlier.answers.all():
        imported_rating(answer, close, "SECRETRATER", RATED, comment="SECRETCOMMENT")
    assert len(carried_ratings(run)) == len(answers.answers.all())
    return run


def secret_queue(**fields: Any) -> ReviewQueue:
    rules = {"strategy": "stratified", "size": 8, "reviewers": 2, "reviews_needed": 2, "reveal": "always"}
    return make_queue(secret_run(), **(rules | {"metrics": ["correctness", "closeness"]} | fields))


def leaks(response: Any) -> list[str]:
    text = response.getvalue().decode() + str(response.headers)
    return [secret for secret in SECRETS if secret in text]


BAD = {"values": {"correctness": {"value": 9}}, "idempotency_key": "k"}


def everything(me: Caller, queue: ReviewQueue, item: int) -> Iterator[tuple[str, Any]]:
    """Every address of the review engine, the way a reviewer meets it before rating, with its name."""
    one, all_of = f"items/{item}/", f"review-queues/{queue.pk}/"
    answer, draw = queue.items.first(), queue.draws.first()
    assert answer
    assert draw
    yield "api-queue-list", me.get("review-queues/")
    yield "api-queue-list", me.post("review-queues/", {"runs": [draw.run_id], "metrics": ["x"], "reviewers": ["y"]})
    yield "api-queue-detail", me.get(all_of)
    yield "api-queue-items", me.get(f"{all_of}items/")
    yield "api-queue-next", me.post(f"{all_of}next/")
    yield "api-queue-progress", me.get(f"{all_of}progress/")
    yield "api-queue-close", me.post(f"{all_of}close/")
    yield "api-queue-reopen", me.post(f"{all_of}reopen/")
    yield "api-queue-reassign", me.post(f"{all_of}reassign/", {"giver": me.user.username, "taker": "x"})
    yield "api-queue-release", me.post(f"{all_of}release/", {"reviewer": me.user.username})
    yield "api-queue-extend", me.post(f"{all_of}extend/", {"reviewer": me.user.username})
    yield "api-queue-name-reviewers", me.post(f"{all_of}name-reviewers/", {"items": [1], "reviewers": ["x"]})
    yield "api-queue-deadline", me.post(f"{all_of}deadline/", {"deadline": None})
    yield "api-queue-agreement", me.get(f"{all_of}agreement/")
    yield "api-queue-export", me.get(f"{all_of}export/")
    yield "api-item-detail", me.get(one)
    yield "api-item-detail", me.client.delete(f"/api/v1/{one}")
    yield "api-item-detail", me.get("items/999999/")
    yield "api-item-draft", me.post(f"{one}draft/", {"values": {"correctness": {"value": 3}}, "comment": "so far"})
    yield "api-item-draft", me.post(f"{one}draft/", {"odd": 1})
    yield "api-item-submit", me.post(f"{one}submit/", BAD)
    yield "api-item-submit", me.post(f"{one}submit/", BAD | {"values": {"odd": {"value": 1}}})
    yield "api-item-submit", me.client.post(f"/api/v1/{one}submit/", b"{", content_type="application/json")
    yield "api-item-reveal", me.post(f"{one}reveal/")
    yield "api-item-finalise", me.post(f"{one}finalise/")
    yield "api-item-finalise", me.post(f"{one}finalise/", {"changes": {"correctness": {"value": 1}}})
    yield "api-item-undo", me.post(f"{one}undo/")
    yield "api-item-extend", me.post(f"{one}extend/")
    yield "api-item-flag", me.post(f"{one}flag/", {"kind": "odd"})
    yield "api-draw-list", me.get("draws/")
    yield "api-draw-list", me.post("draws/", {"run": draw.run_id})
    yield "api-draw-detail", me.get(f"draws/{draw.pk}/")
    yield "api-answer-override", me.post(f"answers/{answer.answer_id}/override/", {"metric": "closeness", "value": 0.5})
    yield "api-rating-list", me.get("ratings/")
    yield "api-rating-list", me.get(f"ratings/?answer={answer.answer_id}&run={draw.run_id}")
    # Last, because they end the item's stay with this person.
    yield "api-item-release", me.post(f"{one}release/")
    yield "api-item-skip", me.post(f"{one}skip/", {"comment": "later"})
    yield "api-item-escalate", me.post(f"{one}escalate/")


def test_no_endpoint_tells_a_reviewer_anything_before_the_rating() -> None:
    queue = secret_queue()
    me, other = members(queue)
    theirs = other.next(queue)
    values = {"correctness": {"value": 1}, "closeness": {"value": 0.1}}
    assert other.submit(theirs["id"], values=values).json()["reveal"]
    shown = other.post(f"items/{theirs['id']}/reveal/")
    assert {"SECRETJUDGE", "SECRETREASON", "73517"} <= set(leaks(shown)), "the plant must be visible where it may be"
    card = me.next(queue)
    found = {name: leaks(response) for name, response in everything(me, queue, card["id"]) if leaks(response)}
    assert found == {}


def test_the_list_of_endpoints_tried_is_complete() -> None:
    queue = secret_queue()
    (me, _) = members(queue)
    tried = {name for name, _ in everything(me, queue, me.next(queue)["id"])}
    owned = {
        pattern.name
        for pattern in urlpatterns
        if isinstance(pattern, URLPattern)
        and pattern.lookup_str.startswith(("review.ratings.api.ItemViewSet", "review.queues.api"))
    }
    assert owned <= tried


def test_a_viewer_who_rates_is_not_given_others_ratings_of_what_is_still_ahead() -> None:
    run = secret_run()
    both = make_user("reviewer", run.project)
    viewer = make_user("viewer", run.project)
    queue = make_queue(run, reviewers=[both, viewer], reviews_needed=2, strategy="all")
    first, me = Caller(both), Caller(viewer)
    card = first.next(queue)
    assert first.submit(card["id"]).status_code == 200
    assert me.get("ratings/").json()["results"] == []
    assert len(first.get("ratings/").json()["results"]) == 2


def test_a_card_holds_exactly_what_rating_needs() -> None:
    queue = secret_queue()
    (me, _) = members(queue)
    card = me.next(queue)
    assert set(card) == {
        *("id", "state", "lease_until", "queue", "queue_name", "guideline", "mode", "question_id", "category"),
        *("history", "question", "references", "answer", "contexts", "metrics", "draft", "given", "final", "stale"),
        *("system", "judge", "claims", "suggestion"),
    }
    assert (card["judge"], card["system"], card["given"]) == (None, "", {})
    assert card["contexts"][1] == {"number": 2, "source": "book", "text": "A second passage.", "link": ""}
    assert [metric["name"] for metric in card["metrics"]] == ["correctness", "closeness"]
    assert card["metrics"][0]["levels"][4] == {"value": 5, "text": "Agrees with the expected answer; nothing is wrong"}


def test_the_system_is_named_only_when_a_lead_switched_hiding_off() -> None:
    (me, _) = members(queue := secret_queue(hide_system=False))
    assert me.next(queue)["system"] == "SECRETSYSTEM v1"


def test_assisted_mode_shows_the_judge_and_no_rating_of_it_is_blind() -> None:
    queue = secret_queue(mode="assisted")
    (me, _) = members(queue)
    card = me.next(queue)
    assert {one["judge"] for one in card["judge"]} == {"SECRETJUDGE@1"}
    values = {"correctness": {"value": 1}, "closeness": {"value": 0.1}}
    assert me.submit(card["id"], values=values).json()["reveal"] is False
    assert {one["blind"] for one in me.get("ratings/").json()["results"]} == {False}


@pytest.mark.parametrize(
    "name", ["Stratified sample", "answers of SECRETSYSTEM", "secretjudge again", "Check secretmodel", "SECRETRUN의 답"]
)
def test_a_queue_name_that_tells_is_refused(name: str) -> None:
    run = secret_run()
    lead = Caller(make_user("lead", run.project))
    rater = make_user("reviewer", run.project)
    body = {"runs": [run.pk], "metrics": ["correctness"], "reviewers": [rater.username], "size": 8, "name": name}
    response = lead.post("review-queues/", body)
    assert (response.status_code, response.json()["code"]) == (409, "queue_name_tells")
