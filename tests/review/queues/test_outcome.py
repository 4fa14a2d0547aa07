"""What the page of a new queue promises is what the results show once the queue is rated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.core.samples import Status
from evaluation.judges.shipped import definitions
from evaluation.models import Run, Score, User
from evaluation.scoring.scores import counting_scores
from review.evidence.rating_input import RatingInput
from review.models import ReviewQueue
from review.models.queue_spec import Coverage, QueueSpec
from review.models.queues import FIRST_OCCASION
from review.queues.creation import close_queue, make_queue
from review.queues.criteria import select_criteria
from review.queues.design import design_samples, draw_params_by_run
from review.queues.outcome import scores_after_review, sufficient_size
from review.queues.planning import next_review
from review.queues.preview import queue_preview
from review.ratings.leases import next_assignment
from review.ratings.submitting import item_metrics, submit
from review.reports.estimates import corrected_score
from review.reports.figure import Figure
from review.reports.inputs import load_inputs
from review.statistics.correction.outcome import Target
from review.statistics.sampling.member import Strategy
from tests.examples import max_examples
from tests.factories import (
    make_answer,
    make_answer_set,
    make_profile,
    make_question_set,
    make_scored_run,
    make_user,
    question_spec,
)
from tests.pages.markup import compact
from tests.review.builders import FAILED, NOT_APPLICABLE, answer_rows, assignment_of, rate, score_row

pytestmark = pytest.mark.django_db
METRICS = ("correctness", "faithfulness", "completeness", "factual_accuracy")
EXPERTS = (4, 2, 5, 3, 1)


class RollBack(Exception):
    """Ends an example and removes its rows."""


def judged_runs(count: int, parts: int, unit: str, run_count: int, *, same_answers: bool) -> list[Run]:
    """Runs over ``count`` questions with so many judged parts, the last of which applies to two answers of three; the
    judge failed on one answer."""
    questions = make_question_set(specs=[question_spec(n, category="plain") for n in range(1, count + 1)])
    names = METRICS[:parts]
    profile = make_profile(
        questions.project,
        {
            "name": "own",
            "title": {"en": "Own", "ko": "자체"},
            "unit": unit,
            "parts": [{"metric": name, "weight": 1 / parts} for name in names],
        },
    )
    answer_sets = [make_answer_set(questions)]
    answer_sets += [answer_sets[0] if same_answers else make_answer_set(questions) for _ in range(run_count - 1)]
    return [scored_run(answers, names, profile) for answers in answer_sets]


def scored_run(answers: Any, names: Sequence[str], profile: Any) -> Run:
    values = [2, 3, 4, 5, 3, 4]
    run = make_scored_run(answers, values, metrics=names[:-1], profile=profile)
    judge, last = run.judges.get(), definitions([names[-1]])[names[-1]]
    by = {"judge_version_id": judge.judge_version_id, "rubric_version_id": judge.rubric_version_id}
    Score.objects.bulk_create(
        score_row(run, answer, last, NOT_APPLICABLE if number % 3 == 2 else values[number % 6], **by)
        for number, answer in enumerate(answer_rows(run))
    )
    return run


def rate_items(queue: ReviewQueue, reviewer: User, only: int | None = None) -> None:
    """Rate the items, or the first ``only``, with varying values."""
    metrics = {row.metric_id: row.metric for row in queue.metrics.select_related("metric")}
    items = queue.items.filter(occasion=FIRST_OCCASION).order_by("shuffle_key").select_related("answer", "run")
    for number, item in enumerate(items[:only]):
        assignment = assignment_of(queue, item.answer, reviewer, item.run)
        for position, pk in enumerate(item.metric_ids or metrics):
            rate(assignment, metrics[pk], EXPERTS[(number + position) % len(EXPERTS)])


def figures_of(runs: Sequence[Run]) -> dict[int, Figure]:
    return {run.pk: corrected_score(load_inputs(run), Target.QUESTIONS_LIKE_THESE) for run in runs}


def outcome(figure: Figure) -> tuple[object, ...]:
    """What is promised: whether a score is withheld and why, and which parts stay uncorrected."""
    return figure.withheld, figure.extra.get("missing"), dict(figure.partly_corrected)


@settings(max_examples=max_examples(50))
# The second run's answers equal those of the first: a rating of one stands for the other.
@example(12, 4, "run_means", 2, False, 1, Strategy.STRATIFIED, Coverage.FEWEST, 15, False, 16)
@given(
    count=st.sampled_from([12, 25, 45]),
    parts=st.sampled_from([1, 3, 4]),
    unit=st.sampled_from(["run_means", "per_answer"]),
    run_count=st.sampled_from([1, 1, 2]),
    same_answers=st.booleans(),
    size=st.integers(1, 60),
    strategy=st.sampled_from([Strategy.STRATIFIED, Strategy.UNIFORM, Strategy.ALL, Strategy.FAILS_PLUS_SHARE]),
    coverage=st.sampled_from(list(Coverage)),
    rated_before=st.sampled_from([None, 0, 3, 15]),
    is_closed=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_promise_holds_for_sizes_profiles_criteria_and_runs(
    count: int,
    parts: int,
    unit: str,
    run_count: int,
    same_answers: bool,
    size: int,
    strategy: Strategy,
    coverage: Coverage,
    rated_before: int | None,
    is_closed: bool,
    seed: int,
) -> None:
    try:
        with transaction.atomic():
            runs = judged_runs(count, parts, unit, run_count, same_answers=same_answers)
            reviewer = make_user(Role.REVIEWER, runs[0].project)
            if rated_before is not None:
                earlier_queue = make_queue(runs[0], QueueSpec(size=15, seed=seed + 1), reviewers=[reviewer])
                rate_items(earlier_queue, reviewer, rated_before)
                if is_closed:
                    close_queue(earlier_queue, by=None)
            spec = QueueSpec(size=size, strategy=strategy, coverage=coverage, seed=seed, fail_below=3.0)
            check_promise(runs, spec, reviewer)
            raise RollBack
    except RollBack:
        pass


def check_promise(runs: list[Run], spec: QueueSpec, reviewer: User) -> None:
    """Compare the promise of a queue with its outcome, and that of the size said to suffice."""
    metrics = select_criteria(runs, spec)
    designs = design_samples(runs, metrics, spec.size, 0.25)
    params = draw_params_by_run(designs, spec)
    try:
        preview = queue_preview(runs, metrics, spec, reviewers=[reviewer], params=params)
    except DomainError as refusal:
        with pytest.raises(DomainError, match=refusal.code):
            make_queue(runs, spec, reviewers=[reviewer], params=params)
        return
    bases = {pk: design.basis for pk, design in designs.items()}
    promised = scores_after_review(bases, metrics, spec, preview.plan)
    if any(figure.withheld for figure in promised.values()):
        size = sufficient_size(bases, runs, metrics, spec, preview.plan, params, [reviewer.pk])
        if size is not None:
            assert size > spec.size
            with transaction.atomic():
                larger_spec = spec.model_copy(update={"size": size})
                rate_items(make_queue(runs, larger_spec, reviewers=[reviewer], params=params), reviewer)
                assert not any(figure.withheld for figure in figures_of(runs).values())
                transaction.set_rollback(True)
    queue = make_queue(runs, spec, reviewers=[reviewer], params=params)
    assert set(queue.items.values_list("answer", flat=True)) == preview.plan.items.keys()
    rate_items(queue, reviewer)
    assert {pk: outcome(figure) for pk, figure in figures_of(runs).items()} == {
        pk: outcome(figure) for pk, figure in promised.items()
    }


@pytest.mark.parametrize("parts", [1, 3, 4])
@pytest.mark.parametrize("unit", ["run_means", "per_answer"])
@pytest.mark.slow
def test_planned_next_review_gives_a_corrected_score(parts: int, unit: str) -> None:
    (run,) = judged_runs(90, parts, unit, 1, same_answers=False)
    reviewer = make_user(Role.REVIEWER, run.project)
    plan = next_review(load_inputs(run))
    assert plan is not None
    rate_items(make_queue(run, QueueSpec(size=plan.items, seed=4), reviewers=[reviewer]), reviewer)
    figure = figures_of([run])[run.pk]
    assert not figure.withheld, figure


def test_answers_waiting_in_a_queue_promise_no_margin_below_the_minimum() -> None:
    (run,) = judged_runs(45, 1, "run_means", 1, same_answers=False)
    reviewer = make_user(Role.REVIEWER, run.project)
    for size, has_margin in ((10, False), (40, True)):
        make_queue(run, QueueSpec(size=size, seed=size), reviewers=[reviewer])
        plan = next_review(load_inputs(run))
        assert plan is not None
        assert plan.waiting
        assert (plan.half_width is not None) == has_margin


def form_of(run: Run, reviewers: Sequence[User], **fields: object) -> dict[str, object]:
    return {
        "run": run.pk, "coverage": "corrected_overall", "strategy": "stratified", "size": 10,
        "reviewers": [reviewer.pk for reviewer in reviewers], "reviews_needed": 1, "mode": "blind", "reveal": "never",
        "reveal_threshold": 2, "adjudicate_from": 2, "overlap_percent": 100, "looks": 2, "repeat_percent": 0,
        "distribution": "pool", "reveal_percent": 10, "seed": 5,
    } | fields  # fmt: skip


def lead_of(run: Run) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.LEAD, run.project))
    return client


def test_preview_shows_no_margin_below_the_minimum_and_offers_enough() -> None:
    (run,) = judged_runs(45, 1, "run_means", 1, same_answers=False)
    lead, reviewer = lead_of(run), make_user(Role.REVIEWER, run.project)
    page = compact(lead.get(reverse("queue-preview"), form_of(run, [reviewer])).content.decode())
    assert "No corrected overall score from these answers." in page
    assert re.search(r"1\d more ratings are needed\.", page)
    assert 'data-set="size" value="' in page
    assert ' class="big">±' not in page
    page = compact(lead.get(reverse("queue-preview"), form_of(run, [reviewer], size=30)).content.decode())
    assert ' class="big">±' in page
    assert "No corrected overall score" not in page


@pytest.mark.parametrize(
    "fields",
    [{}, {"reviews_needed": 3}, {"reviewers": []}, {"name": "stratified"}, {"strategy": "hand_picked"}, {"size": 0}],
)
def test_button_is_enabled_exactly_if_the_queue_can_be_opened(fields: dict[str, object]) -> None:
    (run,) = judged_runs(25, 3, "run_means", 1, same_answers=False)
    lead, reviewer = lead_of(run), make_user(Role.REVIEWER, run.project)
    form_data = form_of(run, [reviewer]) | fields
    page = compact(lead.get(reverse("queue-preview"), form_data).content.decode())
    is_enabled = "disabled" not in page.partition('id="open-queue"')[2].partition(">")[0]
    assert is_enabled or 'id="preview-problem"' in page
    assert (lead.post(reverse("queue-new"), form_data).status_code == 302) == is_enabled


def test_second_opinions_are_offered_once_every_answer_is_rated() -> None:
    (run,) = judged_runs(12, 3, "run_means", 1, same_answers=False)
    lead = lead_of(run)
    first, second = (make_user(Role.REVIEWER, run.project) for _ in range(2))
    earlier_queue = make_queue(run, QueueSpec(strategy="all", seed=1), reviewers=[first])
    rate_items(earlier_queue, first)
    close_queue(earlier_queue, by=None)
    form_data = form_of(run, [first, second])
    page = compact(lead.get(reverse("queue-preview"), form_data).content.decode())
    assert "All answers are rated on these criteria" in page
    address = f"{reverse('queue-new')}?run={run.pk}&amp;strategy=second_opinion"
    assert f'href="{address}"' in page
    form_page = lead.get(address.replace("&amp;", "&")).content.decode()
    assert '<option value="second_opinion" selected>' in form_page
    assert lead.post(reverse("queue-new"), form_data).status_code == 409
    assert lead.post(reverse("queue-new"), form_data | {"strategy": "second_opinion"}).status_code == 302
    queue = ReviewQueue.objects.latest("pk")
    assert queue.items.count() == 10
    assert next_assignment(queue, first) is None
    assert next_assignment(queue, second) is not None
    assert set(queue.draws.get().frame.values_list("probability", flat=True)) == {None}


def test_second_opinion_asks_what_the_first_rater_was_asked() -> None:
    (run,) = judged_runs(30, 4, "run_means", 1, same_answers=False)
    first, second = (make_user(Role.REVIEWER, run.project) for _ in range(2))
    earlier_queue = make_queue(run, QueueSpec(size=20, seed=1), reviewers=[first])
    rate_items(earlier_queue, first)
    close_queue(earlier_queue, by=None)
    before = {pk: outcome(figure) for pk, figure in figures_of([run]).items()}
    queue = make_queue(run, QueueSpec(size=8, strategy="second_opinion", seed=2), reviewers=[first, second])
    assert {pk: outcome(figure) for pk, figure in figures_of([run]).items()} == before
    rated_metrics = {item.answer_id: set(item.metric_ids) for item in earlier_queue.items.all()}
    assert all(set(item.metric_ids) == rated_metrics[item.answer_id] for item in queue.items.all())
    while assignment := next_assignment(queue, second):
        ratings = {row.metric.name: RatingInput(3) for row in item_metrics(assignment.item)}
        submit(assignment, ratings, idempotency_key="second", by=second)
    evidence = load_inputs(run).evidence
    raters = [{row.rater for row in rows} for rows in evidence.blind.values()]
    assert sum(len(people) == 2 for people in raters) == 8 * 3
    assert counting_scores(run).filter(status=Status.NOT_APPLICABLE).exists()


def test_answer_that_the_system_did_not_give_changes_no_promise() -> None:
    """The judge has a failed score for it, and no expert can rate it."""
    questions = make_question_set(specs=[question_spec(n, category="plain") for n in range(1, 31)])
    part = {"metric": "correctness", "weight": 1}
    profile = make_profile(questions.project, {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": [part]})
    answers = make_answer_set(questions)
    run = make_scored_run(answers, [2, 3, 4], metrics=["correctness"], profile=profile)
    lost_answer = make_answer(
        answers, answers.answers.order_by("pk")[0].question, "", status="failed", reason="timeout", round=2
    )
    judge = run.judges.get()
    by = {"judge_version_id": judge.judge_version_id, "rubric_version_id": judge.rubric_version_id}
    score_row(run, lost_answer, definitions(["correctness"])["correctness"], FAILED, **by).save(force_insert=True)
    plan = next_review(load_inputs(run))
    assert plan is not None
    assert plan.half_width is not None
    form_data = form_of(run, [make_user(Role.REVIEWER, run.project)], size=29)
    page = compact(lead_of(run).get(reverse("queue-preview"), form_data).content.decode())
    assert "could not have been sampled" not in page
    assert "±" in page
