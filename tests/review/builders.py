"""Runs whose scores and ratings a test states row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.core.samples import QuestionSpec
from evaluation.judges.shipped import definitions, profile_row, shipped_rubric_row
from evaluation.models import (
    Answer,
    AnswerSet,
    JudgeVersion,
    MetricDefinition,
    ProfileVersion,
    RoleGrant,
    RubricVersion,
    Run,
    Score,
    User,
)
from evaluation.worker.lifecycle import RunConfig, make_run
from review.evidence.invalidation import invalidate_figures
from review.models import (
    Assignment,
    Draw,
    FrameMember,
    Override,
    QueueMember,
    QueueMetric,
    Rating,
    Reservation,
    ReviewItem,
    ReviewQueue,
)
from review.reports.inputs import load_inputs
from review.reports.report import Report, build_report
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_user, unique

RULES = ("keyword_hit", "keyword_coverage", "negative_detection", "latency")
JUDGED = ("correctness", "faithfulness", "completeness")
NOT_APPLICABLE = "not applicable"  # stands for a result without a value in lists of values
FAILED = "failed"
OFF_SCALE = "off the scale"


def metric(name: str, scale: str = "") -> MetricDefinition:
    """A declared metric, or an imported one with the given scale."""
    if not scale:
        return definitions([name])[name]
    return MetricDefinition.objects.create(
        name=name, version=1, kind="imported", scale=scale, content_hash=content_hash([name, scale])
    )


def run_over(
    answers: AnswerSet,
    *,
    judged: bool = True,
    state: str = Run.State.COMPLETED,
    judge: JudgeVersion | None = None,
    profile: ProfileVersion | None = None,
) -> Run:
    """A finished run, under the GraphRAG profile unless another is given, with a primary judge or without any; its
    scores are the test's."""
    profile = profile or profile_row(answers.project, "graphrag")
    primary = judge or (make_judge(answers.project, "judge") if judged else None)
    rubric = shipped_rubric_row("answer_quality", "en")
    run = make_run(
        answers, profile, RunConfig(rules=RULES), judges=[(primary, rubric, True)] if primary and judged else []
    )
    Run.objects.filter(pk=run.pk).update(state=state, started_at=timezone.now(), finished_at=timezone.now())
    run.refresh_from_db()
    return run


def answers_to(categories: Sequence[str], groups: Sequence[str] = ()) -> AnswerSet:
    """A set of one answer per question; the n-th question has the n-th category (and group)."""
    specs = [
        QuestionSpec(
            id=f"q{n}",
            category=category,
            text=f"Question {n}?",
            check="should_not_hallucinate" if category == "negative" else "",
            group=groups[n - 1] if groups else "",
        )
        for n, category in enumerate(categories, start=1)
    ]
    return make_answer_set(make_question_set(make_project(), specs))


def answer_rows(run: Run) -> list[Answer]:
    """The run's answers in the order of the question set."""
    return list(Answer.objects.filter(answer_set_id=run.answer_set_id).order_by("question__position", "sample"))


def score(
    run: Run, answer: Answer, row: MetricDefinition, value: float | str | None, *, author: str = "", **fields: Any
) -> Score:
    """Store one score row; ``score_row`` describes the value."""
    stored_score = score_row(run, answer, row, value, author=author, **fields)
    stored_score.save(force_insert=True)
    return stored_score


def score_row(
    run: Run, answer: Answer, row: MetricDefinition, value: float | str | None, *, author: str = "", **fields: Any
) -> Score:
    """One score row, not stored yet: a number, a class label of a class metric, ``FAILED``, ``OFF_SCALE`` or
    ``NOT_APPLICABLE``."""
    outcome: dict[str, Any] = {"status": "scored", "value": value}
    if value == NOT_APPLICABLE:
        outcome = {"status": "not_applicable", "reason": "no_keywords"}
    elif value == FAILED:
        outcome = {"status": "failed", "reason": "timeout"}
    elif value == OFF_SCALE:
        outcome = {"status": "failed", "reason": "scale: 7"}
    elif isinstance(value, str):
        outcome = {"status": "scored", "label": value}
    fields = outcome | fields
    identity = [run.pk, answer.pk, row.pk, author, fields.get("repeat", 1), fields.pop("by", 0)]
    return Score(run=run, answer=answer, metric=row, author=author, origin=content_hash(identity), **fields)


def score_all(run: Run, values: Mapping[str, Sequence[float | str | None]]) -> None:
    """Scores by metric name, one for each answer in order; ``None`` leaves an answer without a row (pending)."""
    rows = definitions(values)
    judge = run.judges.filter(primary=True).first()
    answers = answer_rows(run)
    scores = []
    for name, metric_values in values.items():
        by: dict[str, Any] = {}
        if name in JUDGED and judge is not None:
            by = {"judge_version_id": judge.judge_version_id, "rubric_version_id": judge.rubric_version_id}
        for answer, value in zip(answers, metric_values, strict=True):
            if value is not None:
                scores.append(score_row(run, answer, rows[name], value, **by))
    Score.objects.bulk_create(scores)


def second_judge(run: Run, values: Mapping[str, Sequence[float | str | None]], name: str = "second") -> JudgeVersion:
    """Add scores of a judge for comparison only."""
    judge = make_judge(run.project, name)
    rubric = RubricVersion.objects.get(pk=run.judges.first().rubric_version_id)
    run.judges.create(judge_version=judge, rubric_version=rubric, primary=False)
    for metric_name, metric_values in values.items():
        row = metric(metric_name)
        for answer, value in zip(answer_rows(run), metric_values, strict=True):
            if value is not None:
                score(run, answer, row, value, judge_version=judge, rubric_version=rubric, by=judge.pk)
    return judge


def queue_for(run: Run, metrics: Sequence[MetricDefinition], reviewers: Sequence[User], **fields: Any) -> ReviewQueue:
    """A queue with members and metrics, without items. One round is planned, so verdicts use 95% intervals."""
    settings = {"reviews_needed": max(3, len(reviewers)), "looks": 1} | fields
    queue = ReviewQueue.objects.create(project=run.project, name=unique("queue"), **settings)
    for reviewer in reviewers:
        RoleGrant.objects.get_or_create(user=reviewer, project=run.project, role="reviewer")
    QueueMetric.objects.bulk_create(QueueMetric(queue=queue, metric=row) for row in metrics)
    QueueMember.objects.bulk_create(QueueMember(queue=queue, reviewer=reviewer) for reviewer in reviewers)
    return queue


def draw_into(queue: ReviewQueue, run: Run, members: Sequence[tuple[str, float | None, bool]], **fields: Any) -> Draw:
    """A draw over the run's answers: (stratum, probability, sampled) for each in order, with items for the sampled."""
    draw = Draw.objects.create(
        queue=queue, run=run, strategy=fields.pop("strategy", "stratified"), seed=7, frame_size=len(members), **fields
    )
    answers = answer_rows(run)
    invalidate_figures([answer.pk for answer in answers])
    FrameMember.objects.bulk_create(
        FrameMember(draw=draw, answer=answer, stratum=stratum, probability=probability, sampled=sampled)
        for answer, (stratum, probability, sampled) in zip(answers, members, strict=True)
    )
    queued = set(ReviewItem.objects.filter(queue=queue, occasion=1).values_list("answer_id", flat=True))
    ReviewItem.objects.bulk_create(
        ReviewItem(queue=queue, answer=answer, run=run, shuffle_key=answer.pk, reviews_needed=queue.reviews_needed)
        for answer, (_stratum, _probability, sampled) in zip(answers, members, strict=True)
        if sampled and answer.pk not in queued
    )
    return draw


def assignment_of(queue: ReviewQueue, answer: Answer, reviewer: User, run: Run, *, occasion: int = 1) -> Assignment:
    """The reviewer's assignment of the answer's item, created when it does not exist."""
    item, _ = ReviewItem.objects.get_or_create(
        queue=queue,
        answer=answer,
        occasion=occasion,
        defaults={
            "run": run,
            "shuffle_key": answer.pk + occasion,
            "reserved": occasion > 1,
            "reviews_needed": queue.reviews_needed if occasion == 1 else 1,
        },
    )
    existing = Assignment.objects.filter(item=item, reviewer=reviewer).first()
    if existing:
        return existing
    if item.reserved:
        Reservation.objects.create(item=item, reviewer=reviewer)
    assignment = Assignment.objects.create(
        item=item, queue=queue, reviewer=reviewer, slot=item.assignments.count() + 1, lease_until=timezone.now()
    )
    set_assignment_state(assignment, Assignment.State.SUBMITTED)
    return assignment


def set_assignment_state(assignment: Assignment, state: str) -> None:
    """Bring an assignment into a rated state, or reopen it, as reviewers do."""
    assignment.state = state
    assignment.submitted_at = None if state == Assignment.State.LEASED else assignment.submitted_at or timezone.now()
    assignment.fence += state == Assignment.State.LEASED
    if state == Assignment.State.REVEALED:
        assignment.revealed_at = timezone.now()
    assignment.save()
    invalidate_figures([assignment.item.answer_id])


def rate(
    assignment: Assignment, row: MetricDefinition, value: float | str | None, *, phase: str = "initial", **fields: Any
) -> Rating:
    """A reviewer's rating, the next of its phase; ``None`` for "cannot judge"."""
    before = Rating.objects.filter(assignment=assignment, metric=row, phase=phase).count()
    assignment.refresh_from_db()
    if phase == "initial" and before:
        set_assignment_state(assignment, Assignment.State.LEASED)
        set_assignment_state(assignment, Assignment.State.SUBMITTED)
    if phase == "final" and assignment.state == Assignment.State.SUBMITTED:
        set_assignment_state(assignment, Assignment.State.REVEALED)
        set_assignment_state(assignment, Assignment.State.FINISHED)
    invalidate_figures([assignment.item.answer_id])
    return Rating.objects.create(
        answer_id=assignment.item.answer_id,
        metric=row,
        assignment=assignment,
        reviewer=assignment.reviewer,
        source="review",
        phase=phase,
        blind=fields.pop("blind", phase == "initial"),
        seq=before + 1,
        value=None if isinstance(value, str) else value,
        label=value if isinstance(value, str) else None,
        cannot_judge=value is None,
        idempotency_key=unique("rating"),
        **fields,
    )


def rate_each(
    queue: ReviewQueue,
    rows: Sequence[MetricDefinition],
    answers: Sequence[Answer],
    ratings: Mapping[User, Sequence[float]],
) -> None:
    """Store first ratings in a few statements: each person gives the n-th answer the n-th value on every metric."""
    items = {item.answer_id: item for item in ReviewItem.objects.filter(queue=queue, occasion=1)}
    now = timezone.now()
    assignments = [
        (Assignment(item=items[answer.pk], queue=queue, reviewer=reviewer, slot=slot, lease_until=now), value)
        for slot, (reviewer, values) in enumerate(ratings.items(), start=1)
        for answer, value in zip(answers, values, strict=True)
    ]
    Assignment.objects.bulk_create(assignment for assignment, _value in assignments)
    Assignment.objects.filter(queue=queue, state=Assignment.State.LEASED).update(
        state=Assignment.State.SUBMITTED, submitted_at=now
    )
    invalidate_figures([answer.pk for answer in answers])
    Rating.objects.bulk_create(
        Rating(
            answer_id=assignment.item.answer_id,
            metric=row,
            assignment=assignment,
            reviewer=assignment.reviewer,
            source="review",
            phase="initial",
            blind=True,
            seq=1,
            value=value,
            idempotency_key=unique("rating"),
        )
        for assignment, value in assignments
        for row in rows
    )


def imported_rating(
    answer: Answer, row: MetricDefinition, author: str, value: float | str | None, **fields: Any
) -> Rating:
    """A rating made elsewhere, stored."""
    invalidate_figures([answer.pk])
    rating = imported_row(answer, row, author, value, **fields)
    rating.save(force_insert=True)
    return rating


def imported_row(
    answer: Answer, row: MetricDefinition, author: str, value: float | str | None, **fields: Any
) -> Rating:
    """A rating made elsewhere, not stored yet."""
    return Rating(
        answer=answer,
        metric=row,
        author=author,
        source="import",
        phase=fields.pop("phase", "initial"),
        blind=fields.pop("blind", True),
        value=None if isinstance(value, str) else value,
        label=value if isinstance(value, str) else None,
        cannot_judge=value is None,
        idempotency_key=unique("rating"),
        **fields,
    )


def decide(answer: Answer, row: MetricDefinition, value: float | str | None, kind: str = "override") -> Override:
    """An override, adjudication or revert, the next in turn."""
    number = Override.objects.filter(answer=answer, metric=row).count() + 1
    invalidate_figures([answer.pk])
    return Override.objects.create(
        answer=answer,
        metric=row,
        seq=number,
        kind=kind,
        value=None if isinstance(value, str) else value,
        label=value if isinstance(value, str) else None,
        reason="the test says so",
        by=make_user(),
    )


def make_report(run: Run) -> Report:
    """The current report of a run, computed without the cache."""
    return build_report(load_inputs(run))
