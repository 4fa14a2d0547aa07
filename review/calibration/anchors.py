"""Anchors: up to 100 hold-out answers that an accepted judge judges again, on schedule or on request.

The reference is the verdicts of both versions in the hold-out test, so that a shift right after it is found at the
first check. A check judges the anchors by the active version and tests each metric for drift since the reference. A
judge that drifted loses its approval. The references of both versions estimate the effect of the new prompt on scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.core.samples import Result
from evaluation.criteria.rubrics import rubric_scope, version_statuses
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricVersion, User
from evaluation.worker.jobs import AT_ONCE, Lease, job
from review.calibration.holdout_rules import hold_out_items, judging_versions, sealed_verdicts
from review.calibration.judge_budget import RemainingWork, judge_remaining, recorded_models
from review.calibration.workbench import Workbench
from review.models import AnchorCheck, AnchorShift, AnchorVerdict, GoldItem, HoldoutTestResult
from review.statistics.acceptance import verdict_shift

# Largest and smallest number of anchors of a check.
MAX_ANCHORS, MIN_ANCHORS = 100, 20
YEAR = timedelta(days=365)
PASSED_RESULTS = HoldoutTestResult.objects.filter(outcome=HoldoutTestResult.Outcome.ACCEPTED).select_related(
    "test__gold_set__project", "test__judge_version__endpoint", "test__candidate", "test__active"
)


def active_passed_results(passed_results: QuerySet[HoldoutTestResult] = PASSED_RESULTS) -> list[HoldoutTestResult]:
    """Return the accepted tests of active versions that are not older than ``CONCORD_APPROVAL_DAYS``."""
    since = timezone.now() - timedelta(days=settings.CONCORD_APPROVAL_DAYS)
    newest: dict[tuple[int, str, int], HoldoutTestResult] = {}
    for passed_result in passed_results.filter(created_at__gte=since).order_by("pk"):
        newest[
            passed_result.test.project_id, passed_result.test.judge_version.name, passed_result.test.candidate_id
        ] = passed_result
    return [passed_result for passed_result in newest.values() if _is_active(passed_result)]


def _is_active(passed_result: HoldoutTestResult) -> bool:
    test = passed_result.test
    return version_statuses(rubric_scope(test.judge_version, test.candidate.family)).active.pk == test.candidate_id


def latest_passed_result(judge: JudgeVersion, rubric: RubricVersion) -> HoldoutTestResult | None:
    """Return the newest accepted test of a version for judges of this name."""
    passed_results = PASSED_RESULTS.filter(test__project=judge.project_id, test__judge_version__name=judge.name)
    return passed_results.filter(test__candidate=rubric).order_by("-pk").first()


def is_proven(judge: JudgeVersion, workbench: Workbench) -> bool:
    """Return whether the judge's active version was proven on the workbench's gold set. Two queries."""
    active = version_statuses(rubric_scope(judge, workbench.family)).active
    passed_result = latest_passed_result(judge, active)
    return passed_result is not None and passed_result.test.lineage == workbench.gold_set.name


@transaction.atomic
def begin_check(passed_result: HoldoutTestResult, *, by: User | None) -> AnchorCheck:
    """Create the next check of an accepted test, or return the unfinished one.

    :raises DomainError: ``anchors_not_in_force`` if another version is active; ``anchors_too_few`` with fewer than 20
        answers with a verdict in the hold-out test."""
    test = passed_result.test
    lock_project(test.project_id)
    newest = passed_result.checks.order_by("-number").first() or store_reference(passed_result)
    if newest.ended_at is None:
        return newest
    if not _is_active(passed_result):
        raise DomainError("anchors_not_in_force", rubric=str(test.candidate))
    if (answer_count := _reference_verdicts(passed_result).values("answer").distinct().count()) < MIN_ANCHORS:
        raise DomainError("anchors_too_few", answers=answer_count, least=MIN_ANCHORS)
    check = AnchorCheck.objects.create(result=passed_result, number=newest.number + 1, step=_next_step(passed_result))
    check_anchors.add(check.pk)
    audit.record(by, "anchors.begun", test, number=check.number, step=check.step)
    return check


@transaction.atomic
def store_reference(passed_result: HoldoutTestResult) -> AnchorCheck:
    """Store the verdicts of the hold-out test on the anchors as reference, once."""
    test = passed_result.test
    lock_project(test.project_id)
    if (reference := passed_result.checks.filter(number=0).first()) is not None:
        return reference
    model = passed_result.approvals.values_list("model", flat=True).first() or ""
    check = AnchorCheck.objects.create(result=passed_result, number=0, step=0, model=model, ended_at=timezone.now())
    for rubric in judging_versions(test):
        verdicts = sealed_verdicts(test, rubric)
        AnchorVerdict.objects.bulk_create(
            AnchorVerdict(
                check_of=check,
                rubric_version=rubric,
                answer_id=item.answer_id,
                metric=item.metric,
                group=item.group,
                value=verdicts[item.answer_id].get(item.metric.name),
            )
            for item in _anchor_items(passed_result)
            if item.answer_id in verdicts
        )
    return check


def _reference_verdicts(passed_result: HoldoutTestResult) -> QuerySet[AnchorVerdict]:
    return AnchorVerdict.objects.filter(check_of__result=passed_result, check_of__number=0)


def _next_step(passed_result: HoldoutTestResult) -> int:
    """Return the number of this drift test for the judge and family within a year.

    The tests of any year have steps of at least 1, 2, 3 …, whose levels add up to less than 5%."""
    test = passed_result.test
    return 1 + (
        AnchorCheck.objects.filter(
            result__test__project=test.project_id,
            result__test__judge_version__name=test.judge_version.name,
            result__test__candidate__family=test.candidate.family,
            number__gt=0,
            created_at__gt=timezone.now() - YEAR,
        ).count()
    )


def _anchor_items(passed_result: HoldoutTestResult) -> list[GoldItem]:
    """Return the labels of the anchors: tested hold-out answers in an order given by the gold set's hash."""
    test = passed_result.test
    by_metric = hold_out_items(test.gold_set, test.candidate, test.since)
    items = [item for metric_items in by_metric.values() for item in metric_items]
    order = {item.answer_id: content_hash([test.gold_set.content_hash, item.answer_id]) for item in items}
    answer_ids = set(sorted(order, key=lambda answer: order[answer])[:MAX_ANCHORS])
    return [item for item in items if item.answer_id in answer_ids]


def run_check(passed_result: HoldoutTestResult, *, by: User | None) -> AnchorCheck:
    """Judge the anchors now, or continue an interrupted check.

    :raises DomainError: see :func:`begin_check`; ``judge_away``, which leaves the check open; ``look_in_hands``."""
    check = begin_check(passed_result, by=by)
    with check_anchors.claimed(check.pk) as lease:
        if lease is None:
            raise DomainError("look_in_hands", look=str(passed_result.test))
        lease.done = _judge_anchors(check, lease)
    return AnchorCheck.objects.get(pk=check.pk)


@transaction.atomic
def request_check(passed_result: HoldoutTestResult, *, by: User | None) -> AnchorCheck:
    """Request a check from a worker, or resume a stalled one.

    :raises DomainError: see :func:`begin_check`."""
    check = begin_check(passed_result, by=by)
    check_anchors.enqueue(check.pk)
    return check


@job("anchor_check")
def check_anchors(check_id: int, lease: Lease) -> timedelta | None:
    check = AnchorCheck.objects.get(pk=check_id)
    return None if check.ended_at or _judge_anchors(check, lease) else AT_ONCE


def begin_due_checks() -> None:
    """Create the checks that are due; none if ``CONCORD_DRIFT_CHECK_DAYS`` is 0."""
    if settings.CONCORD_DRIFT_CHECK_DAYS:
        since = timezone.now() - timedelta(days=settings.CONCORD_DRIFT_CHECK_DAYS)
        due = PASSED_RESULTS.annotate(newest=Max("checks__created_at")).filter(Q(newest=None) | Q(newest__lt=since))
        for passed_result in active_passed_results(due):
            # The page reports a judge with too few anchors.
            with suppress(DomainError):
                begin_check(passed_result, by=None)


def _judge_anchors(check: AnchorCheck, lease: Lease) -> bool:
    """Judge the anchors until the lease ends; return whether the check has ended."""
    passed_result = PASSED_RESULTS.get(pk=check.result_id)
    metrics, groups = _reference_anchors(passed_result)

    def store(rubric: RubricVersion, answer: Answer, _: int, results: Mapping[str, Result]) -> None:
        columns = {"check_of": check, "rubric_version": rubric, "answer": answer, "group": groups[answer.pk]}
        rows = [AnchorVerdict(metric=metric, value=results[metric.name].value, **columns) for metric in metrics]
        AnchorVerdict.objects.bulk_create(rows, ignore_conflicts=True)

    has_ended = judge_remaining(
        lease, passed_result.test.judge_version, lambda: _remaining_verdicts(check, passed_result, set(groups)), store
    )
    AnchorCheck.objects.filter(pk=check.pk).update(model=recorded_models(lease))
    if has_ended:
        _close_check(check, passed_result)
    return has_ended


def _reference_anchors(passed_result: HoldoutTestResult) -> tuple[list[MetricDefinition], dict[int, str]]:
    """Return the metrics of the reference and the group of each anchor."""
    rows = _reference_verdicts(passed_result)
    metrics = MetricDefinition.objects.filter(pk__in=rows.values("metric"))
    return list(metrics), dict(rows.values_list("answer_id", "group"))


def _remaining_verdicts(
    check: AnchorCheck, passed_result: HoldoutTestResult, anchors: set[int]
) -> Iterator[RemainingWork]:
    rows = AnchorVerdict.objects.filter(check_of=check, rubric_version=passed_result.test.candidate)
    if missing := sorted(anchors - set(rows.values_list("answer_id", flat=True))):
        yield passed_result.test.candidate, 1, missing


@transaction.atomic
def _close_check(check: AnchorCheck, passed_result: HoldoutTestResult) -> None:
    """Test for drift and end the check."""
    if not AnchorCheck.objects.filter(pk=check.pk, ended_at=None).update(ended_at=timezone.now()):
        return
    before, now = (_check_values(passed_result, number) for number in (0, check.number))
    metrics = sorted({metric for metric, _ in now})
    for metric in metrics:
        shared = sorted(answer for metric_id, answer in now.keys() & before.keys() if metric_id == metric)
        if len(shared) < MIN_ANCHORS:
            # Too few for a test; the page shows their number.
            continue
        old_values, new_values = ([values[metric, answer][0] for answer in shared] for values in (before, now))
        shift = verdict_shift(
            old_values, new_values, [now[metric, answer][1] for answer in shared], check.step, len(metrics)
        )
        AnchorShift.objects.create(
            check_of=check,
            metric_id=metric,
            answers=shift.n,
            groups=shift.groups,
            change=shift.change,
            low=shift.low,
            high=shift.high,
            moved=shift.moved,
        )
        if shift.moved:
            audit.record(None, "anchors.moved", passed_result.test, number=check.number, change=round(shift.change, 6))


def _check_values(passed_result: HoldoutTestResult, number: int) -> dict[tuple[int, int], tuple[float, str]]:
    """Return value and group by metric and answer, as the proven version judged in a check."""
    rows = AnchorVerdict.objects.filter(
        check_of__result=passed_result,
        check_of__number=number,
        rubric_version=passed_result.test.candidate,
        value__isnull=False,
    )
    return {
        (metric, answer): (float(value or 0.0), group)
        for metric, answer, value, group in rows.values_list("metric_id", "answer_id", "value", "group")
    }


@dataclass(frozen=True, slots=True)
class ShiftSummary:
    """Drift of the judge on a metric since the reference, in units of its scale."""

    metric: str
    answers: int
    change: float
    low: float | None
    high: float | None
    moved: bool


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """A check: ``number`` 0 is the reference. ``at`` is its end date.

    While it has not ended, ``waits_for`` is the code of the reason if it is stalled."""

    judge: str
    rubric: str
    number: int
    at: str
    model: str
    anchors: int
    waits_for: str
    shifts: list[ShiftSummary]


def summarize_checks(checks: QuerySet[AnchorCheck]) -> list[CheckSummary]:
    """Summarize checks, ordered by hold-out test and number. Three queries."""
    rows = checks.select_related("result__test__judge_version", "result__test__candidate")
    counted = rows.annotate(anchors=Count("verdicts__answer", distinct=True), waits_for=check_anchors.problem())
    return [
        CheckSummary(
            judge=check.result.test.judge_version.name,
            rubric=str(check.result.test.candidate),
            number=check.number,
            at=check.ended_at.date().isoformat() if check.ended_at else "",
            model=check.model,
            anchors=check.anchors,
            waits_for=check.waits_for,
            shifts=[
                ShiftSummary(shift.metric.name, shift.answers, shift.change, shift.low, shift.high, shift.moved)
                for shift in check.shifts.all()
            ],
        )
        for check in counted.prefetch_related("shifts__metric").order_by("result", "number")
    ]
