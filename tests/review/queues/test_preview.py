"""The preview of a queue promises what making it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evaluation.core.errors import DomainError
from evaluation.judges.shipped import definitions
from evaluation.models import Run, Score
from review.evidence.rating_input import RatingInput
from review.models import Assignment, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.creation import close_queue
from review.queues.distribution import pick_answers
from review.queues.planning import ReviewStaff
from review.queues.preview import QueuePreview, queue_preview
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from review.statistics.sampling.member import DrawParams
from tests.factories import (
    make_answer_set,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
    question_spec,
    queue_spec,
)
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db


def run_of(count: int, values: Sequence[float | None] = (3,), **fields: Any) -> Run:
    specs = [question_spec(n, category="plain") for n in range(1, count + 1)]
    return make_scored_run(make_answer_set(make_question_set(specs=specs)), values=list(values), **fields)


def promised(runs: Sequence[Run], metrics: Sequence[str] = ("correctness",), **options: Any) -> QueuePreview:
    spec, others = queue_spec({"strategy": "uniform", "size": 4, "reviewers": 1} | options)
    return queue_preview(runs, list(definitions(metrics).values()), spec, **others)


def made(runs: Sequence[Run], metrics: Sequence[str] = ("correctness",), **options: Any) -> ReviewQueue:
    person = make_user("reviewer", runs[0].project)
    return make_queue(runs, metrics=metrics, reviewers=[person], **{"strategy": "uniform", "size": 4} | options)


def rate_next(queue: ReviewQueue, metric: str = "correctness") -> Assignment:
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    submit(held, {metric: RatingInput(3)}, idempotency_key="k", by=held.reviewer)
    return held


def test_one_answer_of_two_runs_is_of_the_first_alone() -> None:
    runs = [run_of(6)]
    runs.append(make_scored_run(make_answer_set(runs[0].answer_set.question_set), values=[3]))
    found = promised(runs, size=1)
    assert (found.items, found.frame_size) == (1, 12)
    assert made(runs, size=1).items.count() == 1


def test_what_an_earlier_queue_left_unrated_is_promised_too() -> None:
    run = run_of(10)
    first = made([run], seed=1)
    answer = rate_next(first).item.answer_id
    close_queue(first, by=None)
    certain = DrawParams(certain=frozenset(first.items.values_list("answer_id", flat=True)))
    found = promised([run], size=3, params=certain)
    # three new ones of the six others, and the three that were left; the rated one needs nothing
    assert (found.items, found.earlier_answers, found.per_reviewer) == (6, 3, 6)
    queue = made([run], size=3)
    assert queue.items.count() == 6
    assert not queue.items.filter(answer=answer).exists()


def test_picking_by_hand_promises_what_is_picked() -> None:
    run = run_of(10)
    answer = rate_next(made([run], seed=1)).item.answer_id
    told = DrawParams(keys=frozenset({answer}), certain=frozenset({answer}))
    found = promised([run], strategy="hand_picked", params=told)
    assert (found.items, found.earlier_answers) == (1, 0)
    with pytest.raises(DomainError, match="nothing_picked"):
        promised([run], strategy="hand_picked", params=DrawParams())


def test_strata_are_previewed_by_the_criteria_that_a_judge_scored() -> None:
    """A rule's value beside a judge's would put both on 0 to 1, where every answer is below 3."""
    run = run_of(8, [1, 5], metrics=["correctness"])
    rule = definitions(["keyword_hit"])["keyword_hit"]
    for answer in run.answer_set.answers.all():
        Score.objects.create(run=run, answer=answer, metric=rule, value=1, status="scored", origin=f"rule {answer.pk}")
    told = {"strategy": "fails_plus_share", "params": DrawParams(fail_below=3, share=0.5)}
    found = promised([run], ["correctness", "keyword_hit"], **told)
    assert found.items == 4 + 2  # the four 1s, and half of the four 5s
    assert made([run], ["correctness", "keyword_hit"], **told).items.count() == 6


def test_runs_over_the_same_answers_promise_the_expected_number() -> None:
    run = run_of(10)
    again = make_scored_run(run.answer_set, values=[4])
    # 4 of 10 by each run's own draw: 10 x (1 - .6 x .6) = 6.4
    assert promised([run, again], size=8).items == 6


def test_the_work_counts_the_share_of_double_review_and_the_repeats() -> None:
    spec = QueueSpec(size=40, reviews_needed=3, overlap_share=0.2, repeat_share=0.05)
    # 40 answers, a fifth of them rated by three: 56 ratings; a twentieth of them again: 58.8 of two people
    assert spec.ratings_per_answer == pytest.approx(1.47)
    assert ReviewStaff(2, spec.ratings_per_answer, 60.0).minutes_each(40) == 30
    assert promised([run_of(40)], reviewers=2, **spec.model_dump(exclude_unset=True)).per_reviewer == 30


def test_answers_of_several_runs_are_picked_over_rest() -> None:
    run = run_of(4)
    other = make_scored_run(make_answer_set(run.answer_set.question_set), values=[3])
    some = [run.answer_set.answers.order_by("pk")[0].pk, other.answer_set.answers.order_by("pk")[1].pk]
    body = {
        "runs": [run.pk, other.pk],
        "metrics": ["correctness"],
        "reviewers": [make_user("reviewer", run.project).username],
        "strategy": "hand_picked",
        "answers": some,
    }
    lead = Caller(make_user("lead", run.project))
    response = lead.post("review-queues/", body)
    assert response.status_code == 201, response.content
    queue = ReviewQueue.objects.get(pk=response.json()["id"])
    assert sorted(queue.items.values_list("answer_id", flat=True)) == sorted(some)
    refused = lead.post("review-queues/", body | {"answers": [999_999]})
    assert (refused.status_code, refused.json()["code"]) == (409, "unknown_keys")
    with pytest.raises(DomainError, match="unknown_keys"):
        pick_answers([run], some)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deadline", "2020-01-01T00:00:00Z"),
        ("people_of_tags", {"tax": []}),
        ("people_of_answers", {"first": ["kim"]}),
    ],
)
def test_what_cannot_be_is_refused_over_rest_and_named(field: str, value: object) -> None:
    run = run_of(4)
    person = make_user("reviewer", run.project, username="kim")
    body = {"runs": [run.pk], "metrics": ["correctness"], "reviewers": [person.username], "size": 2, field: value}
    response = Caller(make_user("lead", run.project)).post("review-queues/", body)
    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]
    assert not ReviewQueue.objects.exists()
