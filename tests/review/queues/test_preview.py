"""Queue preview: its counts equal those of the queue that is then created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.template.loader import render_to_string

from evaluation.core.errors import DomainError
from evaluation.judges.shipped import definitions
from evaluation.models import Run, Score
from review.evidence.answers import record_answer_exposure
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


def preview_of(runs: Sequence[Run], metrics: Sequence[str] = ("correctness",), **options: Any) -> QueuePreview:
    spec, preview_args = queue_spec({"strategy": "uniform", "size": 4} | options)
    reviewers = [make_user("reviewer", runs[0].project) for _ in range(preview_args.pop("reviewers", 1))]
    return queue_preview(runs, list(definitions(metrics).values()), spec, reviewers=reviewers, **preview_args)


def create_queue(runs: Sequence[Run], metrics: Sequence[str] = ("correctness",), **options: Any) -> ReviewQueue:
    reviewer = make_user("reviewer", runs[0].project)
    return make_queue(runs, metrics=metrics, reviewers=[reviewer], **{"strategy": "uniform", "size": 4} | options)


def rate_next(queue: ReviewQueue, metric: str = "correctness") -> Assignment:
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    submit(assignment, {metric: RatingInput(3)}, idempotency_key="k", by=assignment.reviewer)
    return assignment


def test_single_answer_of_two_runs_comes_from_the_first() -> None:
    runs = [run_of(6)]
    runs.append(make_scored_run(make_answer_set(runs[0].answer_set.question_set), values=[3]))
    preview = preview_of(runs, size=1)
    assert (preview.items, preview.frame_size) == (1, 12)
    assert create_queue(runs, size=1).items.count() == 1


def test_preview_names_reviewers_who_saw_the_judge() -> None:
    run, spec = run_of(6), queue_spec({"strategy": "uniform", "size": 6})[0]
    reader, other = (make_user("reviewer", run.project) for _ in range(2))
    record_answer_exposure(reader, run.answer_set.answers.values_list("pk", flat=True)[:4], "run page")
    metrics = list(definitions(["correctness"]).values())
    assert queue_preview([run], metrics, spec, reviewers=[reader, other]).exposed == {reader: 4}
    page = render_to_string(
        "review/queues/_queue_preview.html",
        {"preview": {"estimate": queue_preview([run], metrics, spec, reviewers=[reader])}, "run": run},
    )
    assert f"{reader.display_name} has seen the judge's values for 4 of these answers" in " ".join(page.split())
    assisted = spec.model_copy(update={"mode": "assisted"})
    assert not queue_preview([run], metrics, assisted, reviewers=[reader, other]).exposed


def test_preview_counts_unrated_answers_of_earlier_queues() -> None:
    run = run_of(10)
    first = create_queue([run], seed=1)
    answer = rate_next(first).item.answer_id
    close_queue(first, by=None)
    certain = DrawParams(certain=frozenset(first.items.values_list("answer_id", flat=True)))
    preview = preview_of([run], size=3, params=certain)
    # three new ones of the six others, and the three that were left; the rated one needs nothing
    assert (preview.items, preview.earlier_answers, preview.per_reviewer) == (6, 3, 6)
    queue = create_queue([run], size=3)
    assert queue.items.count() == 6
    assert not queue.items.filter(answer=answer).exists()


def test_hand_picked_preview_counts_the_picked_answers() -> None:
    run = run_of(10)
    answer = rate_next(create_queue([run], seed=1)).item.answer_id
    params = DrawParams(keys=frozenset({answer}), certain=frozenset({answer}))
    preview = preview_of([run], strategy="hand_picked", params=params)
    assert (preview.items, preview.earlier_answers) == (1, 0)
    with pytest.raises(DomainError, match="nothing_picked"):
        preview_of([run], strategy="hand_picked", params=DrawParams())


def test_strata_are_previewed_by_the_judged_metrics() -> None:
    """A rule's value would put both metrics on a 0 to 1 scale, where every answer is below 3."""
    run = run_of(8, [1, 5], metrics=["correctness"])
    rule = definitions(["keyword_hit"])["keyword_hit"]
    for answer in run.answer_set.answers.all():
        Score.objects.create(run=run, answer=answer, metric=rule, value=1, status="scored", origin=f"rule {answer.pk}")
    options = {"strategy": "fails_plus_share", "params": DrawParams(fail_below=3, share=0.5)}
    preview = preview_of([run], ["correctness", "keyword_hit"], **options)
    assert preview.items == 4 + 2  # the four 1s, and half of the four 5s
    assert create_queue([run], ["correctness", "keyword_hit"], **options).items.count() == 6


def test_overlapping_runs_preview_the_answers_of_both_draws() -> None:
    run = run_of(10)
    second_run = make_scored_run(run.answer_set, values=[4])
    preview = preview_of([run, second_run], size=8, seed=3)
    queue = create_queue([run, second_run], size=8, seed=3)
    assert set(queue.items.values_list("answer", flat=True)) == preview.plan.items.keys()
    assert 4 <= preview.items <= 8


def test_workload_counts_double_reviews_and_repeats() -> None:
    spec = QueueSpec(size=40, reviews_needed=3, overlap_share=0.2, repeat_share=0.05)
    # 40 answers, a fifth of them rated by three: 56 ratings; a twentieth of them again: 58.8 of two people
    assert spec.ratings_per_answer == pytest.approx(1.47)
    assert ReviewStaff(2, spec.ratings_per_answer, 60.0).minutes_each(40) == 30
    assert preview_of([run_of(40)], reviewers=2, **spec.model_dump(exclude_unset=True)).per_reviewer == 30


def test_answers_of_several_runs_are_picked_over_rest() -> None:
    run = run_of(4)
    second_run = make_scored_run(make_answer_set(run.answer_set.question_set), values=[3])
    answer_ids = [run.answer_set.answers.order_by("pk")[0].pk, second_run.answer_set.answers.order_by("pk")[1].pk]
    body = {
        "runs": [run.pk, second_run.pk],
        "metrics": ["correctness"],
        "reviewers": [make_user("reviewer", run.project).username],
        "strategy": "hand_picked",
        "answers": answer_ids,
    }
    lead = Caller(make_user("lead", run.project))
    response = lead.post("review-queues/", body)
    assert response.status_code == 201, response.content
    queue = ReviewQueue.objects.get(pk=response.json()["id"])
    assert sorted(queue.items.values_list("answer_id", flat=True)) == sorted(answer_ids)
    rejection = lead.post("review-queues/", body | {"answers": [999_999]})
    assert (rejection.status_code, rejection.json()["code"]) == (409, "unknown_keys")
    with pytest.raises(DomainError, match="unknown_keys"):
        pick_answers([run], answer_ids)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deadline", "2020-01-01T00:00:00Z"),
        ("people_of_tags", {"tax": []}),
        ("people_of_answers", {"first": ["kim"]}),
    ],
)
def test_invalid_settings_are_refused_over_rest_by_field(field: str, value: object) -> None:
    run = run_of(4)
    reviewer = make_user("reviewer", run.project, username="kim")
    body = {"runs": [run.pk], "metrics": ["correctness"], "reviewers": [reviewer.username], "size": 2, field: value}
    response = Caller(make_user("lead", run.project)).post("review-queues/", body)
    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]
    assert not ReviewQueue.objects.exists()
