"""Hold-out tests: run one now (commands) or request one from workers (pages and REST)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from django.db import transaction

from evaluation.core.errors import DomainError
from evaluation.models import JudgeVersion, RubricVersion, User
from evaluation.worker.jobs import AT_ONCE, Lease, job
from review.calibration.anchors import store_reference
from review.calibration.holdout_rules import (
    HoldoutSummary,
    close_holdout_test,
    hold_out_items,
    judging_versions,
    open_holdout_test,
    store_sealed_verdicts,
)
from review.calibration.judge_budget import RemainingWork, judge_remaining, recorded_models
from review.models import GoldSet, HoldoutTest, HoldoutTestResult, SealedVerdict
from review.statistics.acceptance import Claim


def run_holdout_test(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    by: User | None,
    claim: Claim = Claim.BETTER,
    repeat: int = 1,
    since: int = 1,
    reference_judge: JudgeVersion | None = None,
) -> HoldoutSummary:
    """Run a hold-out test now, or continue an interrupted one with the same parameters.

    :raises DomainError: see :func:`open_holdout_test`; ``judge_away`` if the judge cannot be reached, which leaves the
    test
        open; ``look_in_hands`` while another worker runs it."""
    with transaction.atomic():
        test = open_holdout_test(
            gold_set, judge, candidate, by=by, claim=claim, repeat=repeat, since=since, reference_judge=reference_judge
        )
        advance_holdout_test.add(test.pk)
    with advance_holdout_test.claimed(test.pk) as lease:
        if lease is None or (summary := _judge_hold_out(test, lease)) is None:
            raise DomainError("look_in_hands", look=str(test))
        lease.done = True
        return summary


@transaction.atomic
def request_holdout_test(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    by: User | None,
    claim: Claim = Claim.BETTER,
    repeat: int = 1,
    since: int = 1,
    reference_judge: JudgeVersion | None = None,
) -> HoldoutTest:
    """Request a hold-out test from a worker, or resume a stalled one with the same parameters.

    :raises DomainError: see :func:`open_holdout_test`."""
    test = open_holdout_test(
        gold_set, judge, candidate, by=by, claim=claim, repeat=repeat, since=since, reference_judge=reference_judge
    )
    advance_holdout_test.enqueue(test.pk)
    return test


@job("look")
def advance_holdout_test(test_id: int, lease: Lease) -> timedelta | None:
    """Judge the hold-out and close the test."""
    test = HoldoutTest.objects.select_related("gold_set", "judge_version__endpoint").get(pk=test_id)
    return AT_ONCE if _judge_hold_out(test, lease) is None else None


def _judge_hold_out(test: HoldoutTest, lease: Lease) -> HoldoutSummary | None:
    """Return the test's outcome; ``None`` if time ran out or another worker has the job."""
    items = hold_out_items(test.gold_set, test.candidate, test.since).values()
    answer_ids = {item.answer_id for metric_items in items for item in metric_items}
    if not judge_remaining(
        lease, test.judge_version, lambda: _remaining_verdicts(test, answer_ids), partial(store_sealed_verdicts, test)
    ):
        return None
    summary = close_holdout_test(test, recorded_models(lease))
    if summary.outcome == HoldoutTestResult.Outcome.ACCEPTED:
        store_reference(HoldoutTestResult.objects.get(test=test))
    return summary


def _remaining_verdicts(test: HoldoutTest, answer_ids: set[int]) -> Iterator[RemainingWork]:
    for rubric in judging_versions(test):
        for repeat in range(1, test.repeat + 1):
            rows = SealedVerdict.objects.filter(test=test, rubric_version=rubric, repeat=repeat)
            if missing := sorted(answer_ids - set(rows.values_list("answer_id", flat=True))):
                yield rubric, repeat, missing
