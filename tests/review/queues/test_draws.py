"""Sampling draws: the frame, strata by the judge's value, and one record for each frame member."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from evaluation.core.errors import DomainError
from evaluation.models import MetricDefinition, Run, Score
from evaluation.worker.lifecycle import RunConfig
from review.evidence.rating_input import RatingInput
from review.models import Draw, FrameMember, ReviewItem, ReviewQueue
from review.queues.creation import close_queue
from review.queues.draws import draw_strata, make_draw, sampling_frame, steering_metrics
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from review.statistics.sampling.member import DrawParams
from tests.factories import (
    make_answer,
    make_answer_set,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
    question_spec,
)

pytestmark = pytest.mark.django_db


def run_of(count: int, values: list[float | None], **fields: object) -> Run:
    specs = [question_spec(n, category="plain") for n in range(1, count + 1)]
    return make_scored_run(make_answer_set(make_question_set(specs=specs)), values=values, **fields)


def test_every_frame_member_is_stored_with_stratum_and_probability() -> None:
    run = run_of(12, [1, 5], metrics=["correctness"])
    draw = make_draw(run, "stratified", 6, seed=1)
    rows = list(draw.frame.values_list("stratum", "probability", "sampled"))
    assert draw.frame_size == len(rows) == 12
    # two strata of 6 answers each, 3 of each drawn: probability 3 / 6
    assert {(stratum, probability) for stratum, probability, _ in rows} == {("plain 1", 0.5), ("plain 5", 0.5)}
    assert [(group.name, group.size, group.sampled) for group in draw_strata(draw)] == [
        ("plain 1", 6, 3),
        ("plain 5", 6, 3),
    ]


def test_the_same_seed_draws_the_same_answers() -> None:
    run = run_of(12, [1, 3, 5])
    draw, repeated_draw = make_draw(run, "uniform", 5, seed=3), make_draw(run, "uniform", 5, seed=3)
    assert sampled_answers(draw) == sampled_answers(repeated_draw)
    assert sampled_answers(draw) != sampled_answers(make_draw(run, "uniform", 5, seed=4))


def test_failed_answers_are_excluded_and_unjudged_answers_form_a_stratum() -> None:
    run = run_of(10, [None, 3, 3, 3, 3], metrics=["correctness"])
    question = run.answer_set.question_set.questions.first()
    assert question
    make_answer(run.answer_set, question, sample=2, status="failed", reason="timeout", text="")
    draw = make_draw(run, "stratified", 6, seed=1)
    assert draw.frame_size == 10
    assert {stratum.name: stratum.size for stratum in draw_strata(draw)} == {"failed": 2, "all": 8}


def test_newest_of_several_answers_in_rounds_counts() -> None:
    run = run_of(3, [3])
    question = run.answer_set.question_set.questions.first()
    assert question
    newer = make_answer(run.answer_set, question, round=1)
    keys = {member.key for member in sampling_frame(run, []).members}
    assert newer.pk in keys
    assert len(keys) == 3


def test_run_over_selected_questions_draws_from_their_answers_only() -> None:
    answers = make_answer_set(make_question_set(specs=6))
    run = make_scored_run(answers, config=RunConfig(question_ids=("q2", "q4")))
    assert {member.group for member in sampling_frame(run, []).members} == {"q2", "q4"}


def test_draw_uses_the_value_of_one_metric_or_the_mean_of_several() -> None:
    run = run_of(2, [2, 4], metrics=["correctness", "faithfulness"])
    metrics = steering_metrics(run)
    assert [metric.name for metric in metrics] == ["correctness", "faithfulness"]
    assert [member.judge_score for member in sampling_frame(run, metrics[:1]).members] == [2, 4]
    assert [member.judge_score for member in sampling_frame(run, metrics).members] == [2, 4]


def test_metrics_on_different_scales_are_normalised_with_higher_better() -> None:
    run = run_of(1, [5], metrics=["correctness"])
    answer, judge = run.answer_set.answers.get(), run.judges.get()
    risk = MetricDefinition.objects.create(name="risk", version=1, kind="judge", scale="real 0..10", direction="lower")
    Score.objects.create(
        run=run,
        answer=answer,
        metric=risk,
        origin="r" * 64,
        judge_version=judge.judge_version,
        rubric_version=judge.rubric_version,
        status="scored",
        value=4,
    )
    (member,) = sampling_frame(run, steering_metrics(run)).members
    # correctness 5 on 1..5 is 1.0; risk 4 on 0..10, less being better, is 1 - 0.4 = 0.6; the mean is 0.8
    assert member.judge_score == pytest.approx(0.8)


def test_repeats_give_mean_and_spread() -> None:
    run = run_of(1, [2], metrics=["correctness"])
    first = Score.objects.get()
    Score.objects.create(
        run=run,
        answer=first.answer,
        metric=first.metric,
        origin="s" * 64,
        repeat=2,
        judge_version=first.judge_version,
        rubric_version=first.rubric_version,
        status="scored",
        value=4,
    )
    frame = sampling_frame(run, [first.metric])
    assert frame.members[0].judge_score == 3  # the mean of 2 and 4
    assert frame.spread[first.answer_id] == 1  # both lie 1 from their mean


def test_uncertainty_draw_requires_repeats_that_differ() -> None:
    with pytest.raises(DomainError) as error:
        make_draw(run_of(6, [3]), "uncertainty", 3, seed=1)
    assert error.value.code == "no_spread"
    assert not Draw.objects.exists()


def test_hand_picked_answers_have_no_probability() -> None:
    run = run_of(4, [3])
    answer_id = run.answer_set.answers.order_by("pk").values_list("pk", flat=True)[1]
    draw = make_draw(run, "hand_picked", 0, seed=1, params=DrawParams(keys=frozenset({answer_id})))
    assert set(draw.frame.values_list("probability", flat=True)) == {None}
    assert sampled_answers(draw) == {answer_id}


@pytest.mark.parametrize("size", [0, -3])
def test_a_draw_takes_at_least_one_answer(size: int) -> None:
    with pytest.raises(DomainError) as error:
        make_draw(run_of(4, [3]), "uniform", size, seed=1)
    assert error.value.code == "size_below_one"


def test_a_frame_member_never_changes() -> None:
    make_draw(run_of(4, [3]), "all", 1, seed=1)
    with pytest.raises(DatabaseError), transaction.atomic():
        FrameMember.objects.update(probability=0.5)


def sampled_answers(draw: Draw) -> set[int]:
    return set(draw.frame.filter(sampled=True).values_list("answer_id", flat=True))


def queue_on(run: Run, size: int, seed: int) -> ReviewQueue:
    reviewer = make_user("reviewer", run.project)
    return make_queue(run, metrics=["correctness"], strategy="uniform", size=size, seed=seed, reviewers=[reviewer])


def rate_next(queue: ReviewQueue) -> int:
    """Rate the next item and return the id of its answer."""
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    submit(assignment, {"correctness": RatingInput(3)}, idempotency_key="k", by=assignment.reviewer)
    return assignment.item.answer_id


def test_second_draw_before_any_rating_is_independent() -> None:
    run = run_of(10, [3])
    queue_on(run, 4, seed=1)
    second = queue_on(run, 4, seed=2).draws.get()
    assert not second.planned_after_looking
    assert {(stratum.name, stratum.size, stratum.sampled) for stratum in draw_strata(second)} == {("all", 10, 4)}


def test_draw_after_ratings_takes_earlier_answers_as_certain() -> None:
    run = run_of(10, [3])
    first = queue_on(run, 4, seed=1)
    earlier_answers = sampled_answers(first.draws.get())
    rate_next(first)
    second = queue_on(run, 3, seed=2)
    draw = second.draws.get()
    assert draw.planned_after_looking
    assert set(draw.frame.filter(stratum="certain").values_list("answer_id", flat=True)) == earlier_answers
    assert set(draw.frame.filter(stratum="certain").values_list("probability", "sampled")) == {(1.0, True)}
    # of the 6 others 3 are drawn: probability 3 / 6
    assert set(draw.frame.exclude(stratum="certain").values_list("probability", flat=True)) == {0.5}
    assert earlier_answers.isdisjoint(second.items.values_list("answer_id", flat=True))
    assert second.items.count() == 3


def test_unrated_answers_of_a_closed_queue_get_an_item_in_the_next() -> None:
    run = run_of(10, [3])
    first = queue_on(run, 4, seed=1)
    rated_answer = rate_next(first)
    close_queue(first, by=None)
    second = queue_on(run, 3, seed=2)
    unrated_answers = set(first.items.values_list("answer_id", flat=True)) - {rated_answer}
    assert unrated_answers <= set(second.items.values_list("answer_id", flat=True))
    assert second.items.count() == 3 + 3  # three of the rest, three left over
    assert not ReviewItem.objects.filter(queue=second, answer=rated_answer).exists()


def test_ratings_of_other_metrics_do_not_affect_the_draw() -> None:
    run = run_of(10, [3])
    rate_next(queue_on(run, 4, seed=1))
    reviewer = make_user("reviewer", run.project)
    other_queue = make_queue(run, metrics=["faithfulness"], strategy="uniform", size=3, seed=2, reviewers=[reviewer])
    assert not other_queue.draws.get().planned_after_looking


def test_assisted_ratings_do_not_affect_the_draw() -> None:
    run = run_of(10, [3])
    reviewer = make_user("reviewer", run.project)
    assisted = make_queue(
        run, metrics=["correctness"], strategy="uniform", size=4, seed=1, reviewers=[reviewer], mode="assisted"
    )
    rate_next(assisted)
    assert not queue_on(run, 3, seed=2).draws.get().planned_after_looking


def test_hand_picked_queue_ignores_earlier_draws() -> None:
    run = run_of(10, [3])
    first = queue_on(run, 4, seed=1)
    rated_answer = rate_next(first)
    close_queue(first, by=None)  # three stay unrated: a draw by chance would take them up
    reviewer = make_user("reviewer", run.project)
    queue = make_queue(
        run,
        metrics=["correctness"],
        strategy="hand_picked",
        reviewers=[reviewer],
        params=DrawParams(keys=frozenset({rated_answer}), certain=frozenset({rated_answer})),
    )
    assert list(queue.items.values_list("answer_id", flat=True)) == [
        rated_answer
    ]  # a second opinion, though rated before
    draw = queue.draws.get()
    assert not draw.planned_after_looking
    assert set(draw.frame.values_list("probability", flat=True)) == {None}


def test_earlier_answer_rated_for_another_metric_gets_an_item() -> None:
    run = run_of(10, [3])
    first = queue_on(run, 4, seed=1)
    rated_answer = rate_next(first)
    reviewer = make_user("reviewer", run.project)
    metric_names = ["correctness", "faithfulness"]
    second = make_queue(run, metrics=metric_names, strategy="uniform", size=3, seed=2, reviewers=[reviewer])
    earlier_answers = set(first.items.values_list("answer_id", flat=True))
    # the three that wait in the first queue will not be rated for faithfulness there either
    assert rated_answer in earlier_answers <= set(second.items.values_list("answer_id", flat=True))
    assert second.items.count() == 4 + 3
    third = make_queue(run, metrics=metric_names, strategy="uniform", size=2, seed=3, reviewers=[reviewer])
    assert third.items.count() == 2  # now all seven wait in a queue for both
