"""Retirement of gold sets: no further hold-out tests, and the results of earlier ones become readable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import DomainError
from evaluation.criteria.rubrics import MAX_REASON_LENGTH
from evaluation.models import HoldOutOpening, User
from review.calibration.holdout_rules import compare_losses, hold_out_items, sealed_verdicts
from review.calibration.versions import is_retired
from review.evidence.invalidation import invalidate_project_figures
from review.evidence.seals import LabelForm, fixed_label_form, readable
from review.models import GoldRetirement, GoldSet, HoldoutTest
from review.statistics.acceptance import LossComparison


@transaction.atomic
def retire(gold_set: GoldSet, *, by: User | None, reason: str) -> GoldRetirement:
    """Retire the lineage permanently. Its answers stay locked for drafts; approvals stay valid.

    :raises DomainError: ``reason_required``, ``reason_too_long``, ``gold_retired``; ``look_open`` while a hold-out test
    is
        unfinished."""
    lock_project(gold_set.project_id)
    reason = reason.strip()
    if not reason:
        raise DomainError("reason_required")
    if len(reason) > MAX_REASON_LENGTH:
        raise DomainError("reason_too_long", length=len(reason), limit=MAX_REASON_LENGTH)
    if is_retired(gold_set.project_id, gold_set.name):
        raise DomainError("gold_retired", gold=gold_set.name)
    open_test = _holdout_tests(gold_set).filter(result=None).first()
    if open_test is not None:
        raise DomainError("look_open", look=str(open_test), rubric=str(open_test.candidate))
    retirement = GoldRetirement.objects.create(
        project=gold_set.project, lineage=gold_set.name, reason=reason, created_by=by
    )
    openings = HoldOutOpening.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    openings.update(ended_at=timezone.now())
    invalidate_project_figures(gold_set.project)
    audit.record(by, "gold.retired", gold_set, hash=gold_set.content_hash)
    return retirement


@dataclass(frozen=True, slots=True)
class HoldoutResult:
    """Result of a hold-out test on a metric.

    The losses are mean squared distances to the labels on ``answers`` hold-out answers in ``groups`` groups.
    ``lower_by`` is the candidate's improvement with its 95% interval (t over groups); the ends are ``None`` where
    nothing varies. As in the test, a missing verdict of the candidate counts as the squared width of the scale."""

    look: str
    candidate: str
    against: str
    outcome: str
    metric: str
    answers: int
    groups: int
    candidate_loss: float
    against_loss: float
    lower_by: float
    low: float | None
    high: float | None


def holdout_results(gold_set: GoldSet) -> list[HoldoutResult]:
    """Return the results of all hold-out tests of a retired lineage, oldest first.

    :raises DomainError: ``gold_not_retired``."""
    if not is_retired(gold_set.project_id, gold_set.name):
        raise DomainError("gold_not_retired", gold=gold_set.name)
    tests = _holdout_tests(gold_set).filter(result__isnull=False).order_by("number")
    return [result for test in tests for result in _results_of_test(test)]


def _holdout_tests(gold_set: GoldSet) -> QuerySet[HoldoutTest]:
    names = ("gold_set", "candidate", "active", "best", "against__candidate", "against__judge_version", "result")
    rows = HoldoutTest.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    return rows.select_related(*names)


def _results_of_test(test: HoldoutTest) -> list[HoldoutResult]:
    candidate_verdicts = sealed_verdicts(test, test.candidate)
    earlier_test = test.against
    against_verdicts = (
        sealed_verdicts(earlier_test, earlier_test.candidate) if earlier_test else sealed_verdicts(test, test.active)
    )
    against = f"{earlier_test.judge_version.name}: {earlier_test.candidate}" if earlier_test else str(test.active)
    with fixed_label_form(LabelForm.OPEN):
        # Another gold set can still lock some of the answers.
        readable_ids = set(readable(test.gold_set.items.all()).values_list("pk", flat=True))
    results = []
    for name, items in hold_out_items(test.gold_set, test.candidate, test.since).items():
        compared_items = [
            item
            for item in items
            if item.pk in readable_ids and (not earlier_test or item.answer_id in against_verdicts)
        ]
        comparison, _ = compare_losses(
            compared_items, candidate_verdicts, against_verdicts, against_verdicts, items[0].metric
        )
        if len(comparison.groups):
            results.append(_holdout_result(test, against, name, comparison))
    return results


def _holdout_result(test: HoldoutTest, against: str, metric: str, comparison: LossComparison) -> HoldoutResult:
    gain = comparison.gain
    low, high = gain.interval
    return HoldoutResult(
        look=str(test),
        candidate=str(test.candidate),
        against=against,
        outcome=str(test.result.outcome),
        metric=metric,
        answers=len(comparison.groups),
        groups=gain.groups,
        candidate_loss=comparison.loss,
        against_loss=float(np.average(comparison.active, weights=comparison.weights)),
        lower_by=float(gain.mean),
        low=low,
        high=high,
    )
