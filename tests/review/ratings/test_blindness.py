"""Blindness: before a rating, REST reveals neither the judge's score nor the judged system to a reviewer."""

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
    """A run in which all hidden values are recognisable, including ratings of equal answers."""
    project = make_project()
    questions = make_question_set(project, [question_spec(n, category="plain") for n in range(1, 11)])
    earlier_answers, answers = (
        make_answer_set(questions, system="SECRETSYSTEM 1"),
        make_answer_set(questions, system="SECRETSYSTEM"),
    )
    Context.objects.bulk_create(
        Context(answer=answer, position=1, text="A second passage.", score=SCORE, source="book")
        for answer in (*earlier_answers.answers.all(), *answers.answers.all())
    )
    judge = make_judge(project, name="SECRETJUDGE", model="SECRETMODEL")
    run = make_scored_run(answers, reason="SECRETREASON", judge=judge, name="SECRETRUN")
    closeness = MetricDefinition.objects.create(name="closeness", version=1, kind="judge", scale="real 0..1")
    Score.objects.bulk_create(
        Score(
            run=run,
            answer=answer,
            metric=closeness,
            origin=f"{answer.pk:064d}",
            judge_version=judge,
            rubric_version=run.judges.get().rubric_version,
            status="scored",
            value=VALUE,
            reason="SECRETREASON",
        )
        for answer in answers.answers.all()
    )
    for answer in earlier_answers.answers.all():
        imported_rating(answer, closeness, "SECRETRATER", RATED, comment="SECRETCOMMENT")
    assert len(carried_ratings(run)) == len(answers.answers.all())
    return run


def secret_queue(**fields: Any) -> ReviewQueue:
    rules = {"strategy": "stratified", "size": 8, "reviewers": 2, "reviews_needed": 2, "reveal": "always"}
    return make_queue(secret_run(), **(rules | {"metrics": ["correctness", "closeness"]} | fields))


def leaks(response: Any) -> list[str]:
    text = response.getvalue().decode() + str(response.headers)
    return [secret for secret in SECRETS if secret in text]


BAD = {"values": {"correctness": {"value": 9}}, "idempotency_key": "k"}


def requests_before_rating(me: Caller, queue: ReviewQueue, item: int) -> Iterator[tuple[str, Any]]:
    """Yield a named response of every review endpoint, as a reviewer calls it before rating."""
    item_path, queue_path = f"items/{item}/", f"review-queues/{queue.pk}/"
    answer, draw = queue.items.first(), queue.draws.first()
    assert answer
    assert draw
    yield "api-queue-list", me.get("review-queues/")
    yield "api-queue-list", me.post("review-queues/", {"runs": [draw.run_id], "metrics": ["x"], "reviewers": ["y"]})
    yield "api-queue-detail", me.get(queue_path)
    yield "api-queue-items", me.get(f"{queue_path}items/")
    yield "api-queue-next", me.post(f"{queue_path}next/")
    yield "api-queue-progress", me.get(f"{queue_path}progress/")
    yield "api-queue-close", me.post(f"{queue_path}close/")
    yield "api-queue-next-round", me.post(f"{queue_path}next-round/")
    yield "api-queue-reopen", me.post(f"{queue_path}reopen/")
    yield "api-queue-reassign", me.post(f"{queue_path}reassign/", {"giver": me.user.username, "taker": "x"})
    yield "api-queue-release", me.post(f"{queue_path}release/", {"reviewer": me.user.username})
    yield "api-queue-extend", me.post(f"{queue_path}extend/", {"reviewer": me.user.username})
    yield "api-queue-name-reviewers", me.post(f"{queue_path}name-reviewers/", {"items": [1], "reviewers": ["x"]})
    yield "api-queue-deadline", me.post(f"{queue_path}deadline/", {"deadline": None})
    yield "api-queue-agreement", me.get(f"{queue_path}agreement/")
    yield "api-queue-export", me.get(f"{queue_path}export/")
    yield "api-item-detail", me.get(item_path)
    yield "api-item-detail", me.client.delete(f"/api/v1/{item_path}")
    yield "api-item-detail", me.get("items/999999/")
    yield (
        "api-item-draft",
        me.post(f"{item_path}draft/", {"values": {"correctness": {"value": 3}}, "comment": "so far"}),
    )
    yield "api-item-draft", me.post(f"{item_path}draft/", {"odd": 1})
    yield "api-item-submit", me.post(f"{item_path}submit/", BAD)
    yield "api-item-submit", me.post(f"{item_path}submit/", BAD | {"values": {"odd": {"value": 1}}})
    yield "api-item-submit", me.client.post(f"/api/v1/{item_path}submit/", b"{", content_type="application/json")
    yield "api-item-reveal", me.post(f"{item_path}reveal/")
    yield "api-item-finalise", me.post(f"{item_path}finalise/")
    yield "api-item-finalise", me.post(f"{item_path}finalise/", {"changes": {"correctness": {"value": 1}}})
    yield "api-item-undo", me.post(f"{item_path}undo/")
    yield "api-item-extend", me.post(f"{item_path}extend/")
    yield "api-item-flag", me.post(f"{item_path}flag/", {"kind": "odd"})
    yield "api-draw-list", me.get("draws/")
    yield "api-draw-list", me.post("draws/", {"run": draw.run_id})
    yield "api-draw-detail", me.get(f"draws/{draw.pk}/")
    yield "api-answer-override", me.post(f"answers/{answer.answer_id}/override/", {"metric": "closeness", "value": 0.5})
    yield "api-rating-list", me.get("ratings/")
    yield "api-rating-list", me.get(f"ratings/?answer={answer.answer_id}&run={draw.run_id}")
    # Last, because they end the item's stay with this person.
    yield "api-item-release", me.post(f"{item_path}release/")
    yield "api-item-skip", me.post(f"{item_path}skip/", {"comment": "later"})
    yield "api-item-escalate", me.post(f"{item_path}escalate/")


def test_no_endpoint_reveals_the_judge_before_the_rating() -> None:
    queue = secret_queue()
    me, colleague = members(queue)
    other_card = colleague.next(queue)
    values = {"correctness": {"value": 1}, "closeness": {"value": 0.1}}
    assert colleague.submit(other_card["id"], values=values).json()["reveal"]
    reveal_response = colleague.post(f"items/{other_card['id']}/reveal/")
    assert {"SECRETJUDGE", "SECRETREASON", "73517"} <= set(leaks(reveal_response)), (
        "the plant must be visible where it may be"
    )
    card = me.next(queue)
    leaks_by_name = {
        name: leaks(response) for name, response in requests_before_rating(me, queue, card["id"]) if leaks(response)
    }
    assert leaks_by_name == {}


def test_list_of_tested_endpoints_is_complete() -> None:
    queue = secret_queue()
    (me, _) = members(queue)
    tested_names = {name for name, _ in requests_before_rating(me, queue, me.next(queue)["id"])}
    owned = {
        pattern.name
        for pattern in urlpatterns
        if isinstance(pattern, URLPattern)
        and pattern.lookup_str.startswith(("review.ratings.api.ItemViewSet", "review.queues.api"))
    }
    assert owned <= tested_names


def test_rating_viewer_does_not_see_others_ratings_of_unrated_items() -> None:
    run = secret_run()
    reviewer = make_user("reviewer", run.project)
    viewer = make_user("viewer", run.project)
    queue = make_queue(run, reviewers=[reviewer, viewer], reviews_needed=2, strategy="all")
    first, me = Caller(reviewer), Caller(viewer)
    card = first.next(queue)
    assert first.submit(card["id"]).status_code == 200
    assert me.get("ratings/").json()["results"] == []
    assert len(first.get("ratings/").json()["results"]) == 2


def test_card_holds_exactly_the_fields_that_rating_needs() -> None:
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


def test_system_is_named_only_when_hiding_is_off() -> None:
    (me, _) = members(queue := secret_queue(hide_system=False))
    assert me.next(queue)["system"] == "SECRETSYSTEM v1"


def test_assisted_mode_shows_the_judge_and_no_rating_is_blind() -> None:
    queue = secret_queue(mode="assisted")
    (me, _) = members(queue)
    card = me.next(queue)
    assert {row["judge"] for row in card["judge"]} == {"SECRETJUDGE@1"}
    values = {"correctness": {"value": 1}, "closeness": {"value": 0.1}}
    assert me.submit(card["id"], values=values).json()["reveal"] is False
    assert {row["blind"] for row in me.get("ratings/").json()["results"]} == {False}


@pytest.mark.parametrize(
    "name", ["Stratified sample", "answers of SECRETSYSTEM", "secretjudge again", "Check secretmodel", "SECRETRUN의 답"]
)
def test_revealing_queue_name_is_refused(name: str) -> None:
    run = secret_run()
    lead = Caller(make_user("lead", run.project))
    rater = make_user("reviewer", run.project)
    body = {"runs": [run.pk], "metrics": ["correctness"], "reviewers": [rater.username], "size": 8, "name": name}
    response = lead.post("review-queues/", body)
    assert (response.status_code, response.json()["code"]) == (409, "queue_name_tells")
