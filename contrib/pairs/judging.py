"""Judges compare the pairs of a set, each in both orders.

Calls are made and recorded as those of a run, so that a stopped comparison resumes and pays for no call twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.db.models.functions import Now

from contrib.pairs.models import PairAttempt, PairJudging, PairPreflight, PairSet, Preference
from contrib.pairs.pairwise import FAMILY, baseline_preference, join_orders
from contrib.pairs.session import (
    CachedPairReplies,
    ConversationSetup,
    JudgingLease,
    PairSession,
    PendingPair,
    count_attempts,
    find_pending_pairs,
    preference_row,
    question_of,
)
from evaluation.core.errors import DomainError
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import pin_judge, pinned_columns
from evaluation.judges.shipped import shipped_rubric_row
from evaluation.judging.calls import ResponseFormat
from evaluation.judging.probing import ProbeResult
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import Endpoint, JudgeVersion
from evaluation.network.outcomes import Outcome
from evaluation.network.pool import CallPool
from evaluation.runs.progress import Spending, spending_of, spending_of_preflight, total_spending
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.endpoint_quota import QuotaLease

MAX_CONCURRENT_CALLS = 32
LEASE_LOST = "turn_lost"
# Short, because the lease has to be extended while an endpoint cools down.
MAX_NAP_SECONDS = 1.0
ProgressCallback = Callable[[int, int], None]


class ComparisonResult(NamedTuple):
    """Result of a comparison: ``compared`` pairs have ended, ``remaining`` wait. ``reason`` says why a person is
    needed."""

    compared: int
    remaining: int = 0
    reason: str = ""


def judge_pairs(
    pair_set: PairSet,
    judge: JudgeVersion,
    *,
    use_cache: bool = True,
    on_progress: ProgressCallback = lambda compared, total: None,
) -> ComparisonResult:
    """Let the judge compare every pair without a value. ``on_progress`` gets the compared and the total number of
    pairs.

    :raises DomainError: ``comparison_in_work`` while another process works on it, ``jury_compares_nothing``."""
    if judge.is_jury:
        raise DomainError("jury_compares_nothing")
    pending_pairs = find_pending_pairs(pair_set, judge, shipped_rubric_row(FAMILY, judge.language))
    if judge.endpoint is None:
        return _judge_by_baseline(pair_set, judge, pending_pairs, on_progress)
    return (
        _judge_by_calls(pair_set, judge, judge.endpoint, pending_pairs, on_progress, use_cache=use_cache)
        if pending_pairs
        else ComparisonResult(0)
    )


def judge_spending(pair_set: PairSet, judge: JudgeVersion) -> Spending:
    """Cost of the judge's calls about the pairs, preflight included. Two queries."""
    preflights = PairPreflight.objects.filter(judging__pair_set=pair_set, judge_version=judge)
    calls = PairAttempt.objects.filter(judging__pair_set=pair_set, judging__judge_version=judge)
    return total_spending([spending_of(calls), *map(spending_of_preflight, preflights)])


def spending_by_judge(pair_set: PairSet) -> dict[str, Spending]:
    """Cost of the calls of every judge, by its name and version."""
    judgings = PairJudging.objects.filter(pair_set=pair_set).select_related("judge_version").order_by("id")
    return {str(judging.judge_version): judge_spending(pair_set, judging.judge_version) for judging in judgings}


def _judge_by_baseline(
    pair_set: PairSet, judge: JudgeVersion, pending_pairs: Sequence[PendingPair], on_progress: ProgressCallback
) -> ComparisonResult:
    """Compare without calls. A pair without a reference fails once and is not tried again."""
    rubric = shipped_rubric_row(FAMILY, judge.language)
    first_round_pairs = [pending_pair for pending_pair in pending_pairs if pending_pair.round == 0]
    rows = []
    for pending_pair in first_round_pairs:
        question, a, b = question_of(pending_pair.pair), pending_pair.pair.text_a, pending_pair.pair.text_b
        orders = [baseline_preference(question, a, b), baseline_preference(question, b, a)]
        rows.append(preference_row(pending_pair.pair, judge, rubric, pending_pair.round, join_orders(*orders), orders))
    Preference.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    on_progress(len(first_round_pairs), len(first_round_pairs))
    return ComparisonResult(len(first_round_pairs))


def _judge_by_calls(
    pair_set: PairSet,
    judge: JudgeVersion,
    endpoint: Endpoint,
    pending_pairs: Sequence[PendingPair],
    on_progress: ProgressCallback,
    *,
    use_cache: bool,
) -> ComparisonResult:
    rubric = shipped_rubric_row(FAMILY, judge.language)
    judging, _ = PairJudging.objects.get_or_create(pair_set=pair_set, judge_version=judge, rubric_version=rubric)
    lease = JudgingLease(judging)
    if not retry_on_db_error(lease.acquire):
        raise DomainError("comparison_in_work")
    try:
        return _judge_under_lease(
            judging, lease, endpoint, count_attempts(judging, pending_pairs), on_progress, use_cache=use_cache
        )
    finally:
        retry_on_db_error(lease.release)


def _judge_under_lease(
    judging: PairJudging,
    lease: JudgingLease,
    endpoint: Endpoint,
    todo: dict[int, PendingPair],
    on_progress: ProgressCallback,
    *,
    use_cache: bool,
) -> ComparisonResult:
    total, pins = len(todo), _Pins(judging)
    response_format = _pinned_response_format(judging, lease, endpoint, pins)
    if response_format is None:
        return ComparisonResult(0, total, pins.reason or LEASE_LOST)
    setting = ConversationSetup(
        judging.judge_version, shipped_rubric(FAMILY, judging.judge_version.language), response_format
    )
    reply_cache = CachedPairReplies(judging.pair_set.project_id, endpoint.pk) if use_cache else None
    reason = ""
    while todo and not reason:
        if not retry_on_db_error(lease.keep_alive):
            return ComparisonResult(total - len(todo), len(todo), LEASE_LOST)
        share = QuotaLease(endpoint, None, MAX_CONCURRENT_CALLS, project_id=judging.pair_set.project_id)
        try:
            with CallPool(client_of(judging.judge_version), retry_on_db_error(share.renew).allowance) as pool:
                session = PairSession(
                    judging=judging,
                    lease=lease,
                    setup=setting,
                    todo=todo,
                    pool=pool,
                    deadline=float("inf"),
                    lease_seconds=settings.CONCORD_LEASE_SECONDS,
                    cache=reply_cache,
                    quota_lease=share,
                )
                session.work(lambda: on_progress(total - len(todo) - session.flight_count, total))  # noqa: B023 -- called within
        finally:
            retry_on_db_error(share.leave)
        reason = session.reason
        on_progress(total - len(todo), total)
        if todo and not reason:
            seconds_until_due = min(pending_pair.due_at for pending_pair in todo.values()) - time.monotonic()
            _wait(lease, max(seconds_until_due, retry_on_db_error(partial(_cooldown_seconds, endpoint))))
    return ComparisonResult(total - len(todo), len(todo), reason)


def _pinned_response_format(
    judging: PairJudging, lease: JudgingLease, endpoint: Endpoint, pins: _Pins
) -> ResponseFormat | None:
    """Response format of the judge for the whole comparison; ``None`` if the preflight failed or the lease was lost."""

    def renew_lease() -> None:
        retry_on_db_error(lease.keep_alive)

    while (
        (response_format := retry_on_db_error(pins.response_format)) is None
        and not pins.reason
        and retry_on_db_error(lease.keep_alive)
    ):
        if not pin_judge(judging.judge_version, pins, float("inf"), random.Random(), renew_lease) and not pins.reason:
            _wait(lease, max(pins.wait_seconds, retry_on_db_error(partial(_cooldown_seconds, endpoint))))
    return response_format


def _wait(lease: JudgingLease, seconds: float) -> None:
    """Wait and keep the lease alive."""
    until = time.monotonic() + seconds
    while (seconds_left := until - time.monotonic()) > 0 and retry_on_db_error(lease.keep_alive):
        time.sleep(min(seconds_left, MAX_NAP_SECONDS))


def _cooldown_seconds(endpoint: Endpoint) -> float:
    """Seconds until the endpoint may be called again."""
    until, now = Endpoint.objects.annotate(now=Now()).values_list("cooldown_until", "now").get(pk=endpoint.pk)
    return (until - now).total_seconds() if until else 0.0


@dataclass
class _Pins:
    """Preflight rows of a judge in a comparison. ``wait_seconds`` is the time until the next attempt; ``reason`` says
    why a person is needed."""

    judging: PairJudging
    wait_seconds: float = 0.0
    reason: str = ""
    run_id: None = None
    _tries: int = 0

    def response_format(self) -> ResponseFormat | None:
        pinned = PairPreflight.objects.filter(judging=self.judging, outcome=Outcome.OK).values_list(
            "response_format", flat=True
        )
        return next(map(ResponseFormat, pinned), None)

    def attempt_count(self) -> int:
        return self._tries

    def save_result(self, result: ProbeResult, wait_seconds: float | None) -> None:
        self._tries, self.wait_seconds = self._tries + 1, wait_seconds or 0.0
        row = PairPreflight(judging=self.judging, **pinned_columns(self.judging.judge_version, result, wait_seconds))
        PairPreflight.objects.bulk_create([row], ignore_conflicts=result.outcome == Outcome.OK)

    def stop(self, reason: str) -> None:
        self.reason = reason
