"""REST for leads: queues with every option, reassignment, named reviewers, agreement of the reviewers."""

from __future__ import annotations

import pytest

from review.models import Assignment, Reservation, ReviewQueue
from tests.factories import make_answer_set, make_queue, make_scored_run, make_user
from tests.review.clients import Caller, members

pytestmark = pytest.mark.django_db


def lead_of(queue: ReviewQueue) -> Caller:
    return Caller(make_user("lead", queue.project))


def test_queue_over_two_runs_is_distributed_by_tag_with_repeats() -> None:
    run = make_scored_run()
    second_run = make_scored_run(make_answer_set(run.answer_set.question_set))
    kim, lee = make_user("reviewer", run.project), make_user("reviewer", run.project)
    body = {
        "runs": [run.pk, second_run.pk], "metrics": ["correctness"], "reviewers": [kim.username, lee.username],
        "strategy": "all", "distribution": "by_tag", "people_of_tags": {"negative": [kim.username]},
        "reviews_needed": 2, "overlap_share": 0.0,
    }  # fmt: skip
    response = Caller(make_user("lead", run.project)).post("review-queues/", body)
    assert response.status_code == 201, response.content
    queue = ReviewQueue.objects.get(pk=response.json()["id"])
    assert response.json()["distribution"] == "by_tag"
    negative = Reservation.objects.filter(item__queue=queue, item__answer__question__category="negative")
    assert set(negative.values_list("reviewer", flat=True)) == {kim.pk}
    assert queue.items.count() == Reservation.objects.count() == 12


def test_named_answers_are_reserved_for_their_reviewers() -> None:
    run = make_scored_run()
    kim = make_user("reviewer", run.project)
    answer = run.answer_set.answers.first()
    body = {
        "runs": [run.pk], "metrics": ["correctness"], "reviewers": [kim.username], "strategy": "all",
        "distribution": "per_item", "people_of_answers": {str(answer.pk): [kim.username]},
    }  # fmt: skip
    lead = Caller(make_user("lead", run.project))
    for invalid_id in ("9" * 5_000, "9" * 30, "²"):  # no id of an answer
        response = lead.post("review-queues/", body | {"people_of_answers": {invalid_id: [kim.username]}})
        assert response.status_code == 400, invalid_id
    assert lead.post("review-queues/", body).status_code == 201
    assert Reservation.objects.get().item.answer == answer


def test_items_are_reassigned_and_reserved() -> None:
    queue = make_queue(reviewers=2)
    first, second = members(queue)
    assignment = Assignment.objects.get(pk=first.next(queue)["id"])
    lead, path = lead_of(queue), f"review-queues/{queue.pk}"
    transfer = {"giver": first.user.username, "taker": second.user.username}
    assert lead.post(f"{path}/reassign/", transfer).json() == {"items": 1, "kept": 0}
    assert second.next(queue)
    assert lead.post(f"{path}/extend/", {"reviewer": second.user.username}).json()["items"] == 1
    assert lead.post(f"{path}/release/", {"reviewer": second.user.username}).json()["items"] == 1
    names = {"items": [assignment.item_id], "reviewers": [first.user.username]}
    assert lead.post(f"{path}/name-reviewers/", names).json()["items"] == 1
    assert lead.post(f"{path}/deadline/", {"deadline": "2036-01-01T00:00:00Z"}).status_code == 204
    assert lead.post(f"{path}/deadline/", {"deadline": "2001-01-01T00:00:00Z"}).status_code == 409
    response = lead.post(f"{path}/reassign/", {"giver": first.user.username, "taker": "nobody-here"})
    assert response.status_code == 400


def test_agreement_of_reviewers_is_for_leads() -> None:
    queue = make_queue(reviewers=2, reviews_needed=2, reveal="never")
    for caller in members(queue):
        for number in range(3):
            caller.submit(caller.next(queue)["id"], f"k{number}", active_ms=2_000)
    path = f"review-queues/{queue.pk}/agreement/"
    assert members(queue)[0].get(path).status_code == 403
    rows = lead_of(queue).get(path).json()
    for row in rows:
        assert row["under_three_seconds"] == 3
        assert row["peers"] is None or row["peers"]["exact"] == 1.0
