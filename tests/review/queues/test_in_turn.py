"""Queues that rotate their criteria: stored metrics, the metrics of an item, and corrected scores."""

from __future__ import annotations

from collections import Counter

import pytest

from evaluation.core.errors import DomainError
from evaluation.models import MetricDefinition, Run, Score
from review.evidence.rating_input import RatingInput
from review.evidence.sampling import load_samples
from review.models import Draw, Rating, ReviewQueue
from review.models.queue_spec import Coverage, QueueSpec
from review.queues.creation import make_queue
from review.queues.criteria import select_criteria
from review.queues.preview import queue_preview
from review.ratings.card import build_card
from review.ratings.leases import next_assignment
from review.ratings.submitting import item_metrics, submit
from review.reports.estimates import correction_sheet
from review.reports.inputs import load_inputs
from tests.factories import make_answer_set, make_profile, make_question_set, make_scored_run, make_user, question_spec

pytestmark = pytest.mark.django_db
PARTS = {"correctness": 0.4, "faithfulness": 0.3, "completeness": 0.2, "factual_accuracy": 0.1}
COUNT = 60


@pytest.fixture
def run() -> Run:
    """Sixty answers judged 2, 3 and 4 in turn, under a profile of four judged parts."""
    answers = make_answer_set(make_question_set(specs=[question_spec(n) for n in range(1, COUNT + 1)]))
    parts = [{"metric": name, "weight": weight} for name, weight in PARTS.items()]
    spec = {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": parts}
    return make_scored_run(answers, [2, 3, 4], metrics=[*PARTS], profile=make_profile(answers.project, spec))


def queue_over(run: Run, **settings: object) -> ReviewQueue:
    reviewer = make_user("reviewer", run.project)
    return make_queue(run, QueueSpec(seed=5, reveal="never", **settings), reviewers=[reviewer])


def rate_all(queue: ReviewQueue, below: float = 1.0) -> None:
    """Rate every item as the queue's one reviewer, ``below`` levels under the judge."""
    reviewer = queue.members.get().reviewer
    number = 0
    while assignment := next_assignment(queue, reviewer):
        number += 1
        judge_values = dict(Score.objects.filter(answer=assignment.item.answer).values_list("metric__name", "value"))
        ratings = {
            row.metric.name: _clipped_rating(row.metric, judge_values[row.metric.name] - below)
            for row in item_metrics(assignment.item)
        }
        submit(assignment, ratings, idempotency_key=f"k{number}", by=reviewer)


def _clipped_rating(metric: MetricDefinition, value: float) -> RatingInput:
    scale = metric.read_scale()
    return RatingInput(value=min(max(value, scale.low), scale.high))


def test_default_criteria_cover_all_judged_parts_with_three_per_answer(run: Run) -> None:
    queue = queue_over(run, size=40)
    assert [row.metric.name for row in queue.metrics.all()] == sorted(PARTS, key=lambda name: (-PARTS[name], name))
    items = list(queue.items.all())
    assert {len(item.metric_ids) for item in items} == {3}
    # 40 answers x 3 of 4: each part is rated of 30
    assert set(Counter(pk for item in items for pk in item.metric_ids).values()) == {30}
    draws = Draw.objects.filter(queue=queue)
    assert {draw.metric.name for draw in draws if draw.metric} == set(PARTS)
    for draw in draws:
        sampled_answers = {item.answer_id for item in items if draw.metric_id in item.metric_ids}
        assert set(draw.frame.filter(sampled=True).values_list("answer", flat=True)) == sampled_answers
        # drawn with about 40 / 60 by stratum, asked with 3 / 4
        chances = draw.frame.values_list("probability", flat=True)
        assert sum(chances) == pytest.approx(30)
        inclusions = load_samples(run.answer_set_id, [item.answer_id for item in items]).inclusions(
            draw.metric_id or 0, []
        )
        assert {answer for answer, inclusion in inclusions.items() if inclusion.sampled} == sampled_answers


def test_fewest_coverage_asks_the_three_heaviest_criteria_of_every_answer(run: Run) -> None:
    queue = queue_over(run, size=40, coverage="fewest_keys")
    assert {row.metric.name for row in queue.metrics.all()} == {"correctness", "faithfulness", "completeness"}
    assert {tuple(item.metric_ids) for item in queue.items.all()} == {()}
    assert [draw.metric for draw in queue.draws.all()] == [None]


def test_named_criteria_are_asked_of_every_answer_up_to_three(run: Run) -> None:
    small_queue = make_queue(
        run, QueueSpec(size=10), metrics=["correctness"], reviewers=[make_user("reviewer", run.project)]
    )
    spec = QueueSpec(size=40, coverage=Coverage.FEWEST)
    large_queue = make_queue(run, spec, metrics=[*PARTS], reviewers=[make_user("reviewer", run.project)])
    assert {tuple(item.metric_ids) for queue in (small_queue, large_queue) for item in queue.items.all()} == {()}


def test_inapplicable_criterion_is_not_asked_and_no_criteria_is_refused(run: Run) -> None:
    scores = Score.objects.filter(run=run, metric__name="correctness")
    unscored_run = make_scored_run(run.answer_set, metrics=["completeness"], values=[None], profile=run.profile_version)
    assert "correctness" in [metric.name for metric in select_criteria([run], QueueSpec())]
    assert scores.exists()
    with pytest.raises(DomainError, match="no_metrics"):
        select_criteria([unscored_run], QueueSpec())


def test_item_takes_ratings_of_its_own_metrics_only(run: Run) -> None:
    queue = queue_over(run, size=40)
    reviewer = queue.members.get().reviewer
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    metric_names = [row.metric.name for row in item_metrics(assignment.item)]
    assert [card_metric.name for card_metric in build_card(assignment, "en").metrics] == metric_names
    with pytest.raises(DomainError, match="metrics_unknown"):
        submit(assignment, {name: RatingInput(value=1) for name in PARTS}, idempotency_key="k", by=reviewer)
    with pytest.raises(DomainError, match="metrics_missing"):
        submit(assignment, {metric_names[0]: RatingInput(value=1)}, idempotency_key="k", by=reviewer)
    submit(assignment, {name: RatingInput(value=1) for name in metric_names}, idempotency_key="k", by=reviewer)
    assert set(Rating.objects.values_list("metric__name", flat=True)) == set(metric_names)


def test_the_overall_score_is_corrected_from_ratings_of_different_answers(run: Run) -> None:
    rate_all(queue_over(run, size=40))
    estimates = correction_sheet(load_inputs(run)).estimates
    scores = {name: estimate.corrected for name, estimate in estimates.items() if name in PARTS}
    assert all(not figure.withheld for figure in scores.values()), scores
    assert estimates["correctness"].corrected.extra["labels"] == 30
    # The judge gives 2, 3 and 4 in equal numbers, 3 on average, and people are one below.
    assert estimates["correctness"].corrected.value == pytest.approx(2.0)
    overall, judge = estimates["overall"].corrected, estimates["overall"].judge_only
    # .9 x 3/5 + .1 x 3/100, and with one level less .9 x 2/5 + .1 x 2/100
    assert (judge.value, overall.value) == (pytest.approx(0.543), pytest.approx(0.362))
    assert overall.partly_corrected == {}
    assert overall.extra["labels"] == 40


def test_rated_answers_are_certain_for_their_own_criterion_only(run: Run) -> None:
    first = queue_over(run, size=40)
    rate_all(first)
    second = queue_over(run, size=20)
    for draw in second.draws.all():
        rated_answers = {item.answer_id for item in first.items.all() if draw.metric_id in item.metric_ids}
        certain = draw.frame.filter(stratum="certain")
        assert set(certain.values_list("answer", flat=True)) == rated_answers
        assert set(certain.values_list("probability", "sampled")) == {(1.0, True)}
        assert draw.planned_after_looking
        new_answers = {item.answer_id for item in second.items.all() if draw.metric_id in item.metric_ids}
        assert not new_answers & rated_answers  # nobody rates the same twice
        remainder = draw.frame.exclude(stratum="certain")
        assert set(remainder.filter(sampled=True).values_list("answer", flat=True)) == new_answers


def test_preview_shows_criteria_per_answer_and_time(run: Run) -> None:
    spec, reviewers = QueueSpec(size=20), [make_user("reviewer", run.project)]
    metrics = select_criteria([run], spec)
    preview = queue_preview([run], metrics, spec, reviewers=reviewers)
    assert (preview.criteria_per_answer, spec.share_per_criterion(4)) == (3, 0.75)
    assert preview.pace == 30 + 25 * 3  # the guess for three criteria, not for four
    fewest_spec = QueueSpec(size=20, coverage=Coverage.FEWEST)
    fewest = queue_preview([run], select_criteria([run], fewest_spec), fewest_spec, reviewers=reviewers)
    assert fewest.criteria_per_answer == 3
