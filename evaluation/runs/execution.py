"""Executing a run: preflight, claiming and processing units until none is left or time is up, and completion. Needs no
queue."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Event
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.core.samples import Result
from evaluation.extensions import FEATURE_OFF, batch_hooks
from evaluation.judges.clients import client_of
from evaluation.judges.embeddings import embedder_of, token_model
from evaluation.judges.preflight import pin_steps, pinned_columns
from evaluation.judging.calls import ResponseFormat
from evaluation.judging.probing import ProbeResult
from evaluation.metric_packages.isolation import PackageProcess
from evaluation.metric_packages.loading import changed_packages
from evaluation.models import JudgeVersion, Preflight, Run, RunEvent, RunJudge, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.pool import CallPool
from evaluation.runs.budgets import budget_guard
from evaluation.scoring import scores
from evaluation.scoring.baseline import BaselineScorer
from evaluation.scoring.embeddings import EmbeddingSession
from evaluation.scoring.judges import JudgeSession
from evaluation.scoring.own_metrics import OwnMetricSession
from evaluation.scoring.replies import cached_replies
from evaluation.scoring.rules import RULE_BATCH, RuleScorer
from evaluation.scoring.scores import (
    combine_juries,
    derive_scores,
    expected_metrics,
    incomplete_metrics,
)
from evaluation.systems.collection import CollectionSession, finish_collection, give_up_questions, open_questions
from evaluation.systems.services import client_of as system_client
from evaluation.worker import dispatch, tracing, units
from evaluation.worker.database import STORAGE_FULL, analyze_tables, is_short_of_space, probe_write, retry_on_db_error
from evaluation.worker.endpoint_quota import QuotaLease
from evaluation.worker.lifecycle import RunConfig, begin, pause, unpinned
from evaluation.worker.sessions import EMPTY_CLAIM_SECONDS
from evaluation.worker.steps import Steps, interleave
from evaluation.worker.units import State


def preflight(run: Run, deadline: float) -> None:
    """Pin all unpinned judges of the run at once, then begin the run; pause it with the reason if one cannot be pinned.
    Does nothing in other states, or while a server asks for more time.

    ``deadline`` is in monotonic seconds; the next worker continues after it."""
    waits = Preflight.objects.filter(run=run, retry_at__gt=Now())
    if run.state != Run.State.PREFLIGHT or retry_on_db_error(waits.exists):
        return
    wake = Event()
    judges = retry_on_db_error(lambda: unpinned(run))
    interleave([pin_steps(judge, RunPinStore(run, judge), deadline, random.Random(), wake) for judge in judges], wake)
    if not retry_on_db_error(lambda: unpinned(run)):
        retry_on_db_error(lambda: begin(run))


def response_format_of(run: Run, judge: JudgeVersion) -> ResponseFormat:
    """The response format pinned for the run. The default is the strict JSON schema, for runs without preflight."""
    formats = Preflight.objects.filter(run=run, judge_version=judge, outcome=Outcome.OK).values_list(
        "response_format", flat=True
    )
    return ResponseFormat(next(iter(formats), ResponseFormat.JSON_SCHEMA))


@dataclass(frozen=True, slots=True)
class RunPinStore:
    """The preflight rows of a judge in a run."""

    run: Run
    judge: JudgeVersion

    @property
    def run_id(self) -> int:
        return self.run.pk

    def attempt_count(self) -> int:
        manual_events = RunEvent.objects.filter(run=self.run, verb__in=["started", "resumed", "retried"])
        last = manual_events.order_by("-id").first()
        rows = Preflight.objects.filter(run=self.run, judge_version=self.judge)
        return (rows.filter(created_at__gte=last.created_at) if last else rows).count()

    def save_result(self, result: ProbeResult, wait_seconds: float | None) -> None:
        """Store a preflight. If two workers pin at once, the first one's response format holds for both."""
        # A judge with repeats is not the same judge as one with a single verdict.
        repeat = RunConfig.model_validate(self.run.config).repeat
        extra_key = [repeat] if repeat > 1 else []
        row = Preflight(run=self.run, **pinned_columns(self.judge, result, wait_seconds, extra_key))
        Preflight.objects.bulk_create([row], ignore_conflicts=result.outcome == Outcome.OK)

    def stop(self, reason: str) -> None:
        pause(self.run, reason=reason)


CRASH_LOOP = "crash_loop"
PACKAGE_CHANGED = "package_changed"
UPSTREAM = "upstream"


def fail_crash_loops(run: Run) -> int:
    """Fail the units that crashed their workers repeatedly, so that the rest of the run completes."""
    failed = Result.failed(CRASH_LOOP)
    outcomes = [
        scores.UnitOutcome(unit, dict.fromkeys(expected_metrics(run, unit), failed), CRASH_LOOP)
        for unit in units.crash_looping().filter(run=run).exclude(kind=WorkUnit.Kind.ASK)
    ]
    return scores.write_scores(outcomes) if outcomes else 0


def fail_crash_looping_questions(run: Run) -> int:
    """Fail the questions that crashed their workers repeatedly, with an answer that gives the reason."""
    return give_up_questions(run, list(units.crash_looping().filter(run=run, kind=WorkUnit.Kind.ASK)), CRASH_LOOP)


def fail_dependents(run: Run) -> int:
    """Fail the blocked units whose predecessor failed."""
    waiting = WorkUnit.objects.filter(run=run, state=State.BLOCKED, needs__state=State.FAILED)
    ids = list(waiting.values_list("pk", flat=True))
    blocked = WorkUnit.objects.filter(pk__in=ids, state=State.BLOCKED)
    return blocked.update(state=State.FAILED, reason=UPSTREAM, finished_at=Now()) if ids else 0


def finish_run(run: Run) -> bool:
    """Complete a running run without open units, or mark it incomplete and name the metrics responsible."""
    fail_dependents(run)
    if units.open_units(run.pk).exists():
        return False
    analyze_tables(run)
    finish_collection(run)
    combine_juries(run)
    derive_scores(run)
    incomplete = incomplete_metrics(run)
    state = Run.State.INCOMPLETE if incomplete else Run.State.COMPLETED
    reason = ", ".join(
        f"{coverage.metric}: {coverage.lost_results}/{coverage.scored + coverage.lost_results}"
        for coverage in incomplete
    )
    with transaction.atomic():
        finished = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
            state=state, reason=reason, finished_at=Now()
        )
        if finished:
            RunEvent.objects.create(run=run, verb=state, reason=reason)
            audit.record(None, f"run.{state}", run)
    run.refresh_from_db()
    return bool(finished)


STARTED = (Run.State.PREFLIGHT, Run.State.RUNNING)
# How long a new worker waits for a database that refuses writes.
UNWRITABLE_SECONDS = 20.0


def drain(run_id: int, *, seconds: float, tick: Callable[[], None] | None = None) -> Run:
    """Work on a run for up to ``seconds``. Enqueues the run again if claimable units remain; completes it if none is
    open.

    ``tick`` is called about once a second while calls are made, to show progress.

    :raises DomainError: ``database_read_only`` or ``database_full`` if nothing can be written; the run stays as it
    is."""
    try:
        with tracing.trace_span("run", {"concord.run.id": run_id}):
            return _drain(run_id, time.monotonic() + seconds, tick)
    finally:
        if spans := tracing.spans():
            spans.flush()


def _drain(run_id: int, deadline: float, tick: Callable[[], None] | None) -> Run:
    run = retry_on_db_error(
        lambda: Run.objects.select_related("profile_version", "answer_set__system_version__system").get(pk=run_id)
    )
    config = RunConfig.model_validate(run.config)
    # Check before paying for results that could not be stored.
    retry_on_db_error(probe_write, seconds=UNWRITABLE_SECONDS)
    if run.state == Run.State.RUNNING and is_short_of_space():
        retry_on_db_error(lambda: pause(run, reason=STORAGE_FULL))
        return run
    # Single calls would cost more than the user agreed to.
    if config.batch and batch_hooks() is None:
        retry_on_db_error(lambda: pause(run, reason=f"{FEATURE_OFF}: batches"))
        return run
    # The run's figures would mix versions.
    if run.state in STARTED and (changed := changed_packages(config.packages)):
        retry_on_db_error(lambda: pause(run, reason=f"{PACKAGE_CHANGED}: {changed}"))
        return run
    guard = budget_guard(run)
    has_paid_units = guard and run.state in STARTED and retry_on_db_error(partial(_has_paid_units, run))
    if guard and has_paid_units and (reason := retry_on_db_error(guard.stop_reason)):
        retry_on_db_error(lambda: pause(run, reason=reason))
        return run
    preflight(run, deadline)
    retry_on_db_error(lambda: fail_crash_looping_questions(run))
    retry_on_db_error(lambda: fail_crash_loops(run))
    retry_on_db_error(lambda: fail_dependents(run))
    wake = Event()
    # A group comes after those whose results it waits for.
    groups = [
        _repeat(partial(_has_questions, run), partial(_collect_answers, run, config, deadline, wake), deadline),
        *(
            _repeat(
                partial(_has_judge_units, run, judges),
                partial(_judge_units, run, config, judges, deadline, wake),
                deadline,
            )
            for judges in retry_on_db_error(lambda: _judges_by_endpoint(run, by_model=config.batch))
        ),
        _repeat(partial(_has_embeddings, run), partial(_embed_units, run, config, deadline, wake), deadline),
        *([_own_metrics(run, deadline, wake)] if config.own_rules else []),
    ]
    interleave(groups, wake, background=LocalScoring(run, deadline), on_tick=tick)
    retry_on_db_error(lambda: finish_run(run))
    if run.state == Run.State.RUNNING and retry_on_db_error(
        lambda: _claimable_units(run).exclude(units.on_resting_endpoint()).exists()
    ):
        retry_on_db_error(lambda: dispatch.enqueue_run(run_id))
    return run


def _has_paid_units(run: Run) -> bool:
    """Return whether open units of the run may cause paid calls."""
    return units.open_units(run.pk).filter(kind__in=[WorkUnit.Kind.JUDGE, WorkUnit.Kind.EMBED]).exists()


def _claimable_units(run: Run, **conditions: Any) -> QuerySet[WorkUnit]:
    """The claimable units of a running run, including those of a resting endpoint."""
    return WorkUnit.objects.filter(units.claimable(), run_id=run.pk, run__state=Run.State.RUNNING, **conditions)


def _repeat(has_work: Callable[[], bool], work: Callable[[], Steps[Any]], deadline: float) -> Steps[None]:
    """Do work whenever there is some, until ``deadline`` (monotonic seconds)."""
    while time.monotonic() < deadline:
        if retry_on_db_error(has_work):
            yield from work()
        yield None


# Units scored while calls are in flight; few, so that replies do not wait long.
UNITS_PER_STEP = 40


class LocalScoring:
    """Scores a run by rules and by the offline baseline, some units at a time. Settings are loaded on first use."""

    def __init__(self, run: Run, deadline: float) -> None:
        self._run, self._deadline = run, deadline
        self._empty_until = float("-inf")

    @cached_property
    def _scorers(self) -> tuple[RuleScorer | BaselineScorer, ...]:
        return RuleScorer(self._run), BaselineScorer(self._run)

    def __call__(self, calls_in_flight: bool) -> bool:
        """Claim and score units; false if none is left or time is up.

        While calls are in flight, takes few, and skips those that may have crashed a worker, because a crash would lose
        the calls. Otherwise takes many, and last those."""
        now = time.monotonic()
        if now >= self._deadline or (calls_in_flight and now < self._empty_until):
            return False
        if calls_in_flight:
            count = self._score(UNITS_PER_STEP)
        else:
            count = self._score(RULE_BATCH) or self._score(1, suspects=True)
        if not count:
            self._empty_until = now + EMPTY_CLAIM_SECONDS
        return bool(count)

    def _score(self, size: int, *, suspects: bool = False) -> int:
        for scorer in self._scorers:
            if claimed := retry_on_db_error(partial(scorer.claim, size, suspects=suspects)):
                with tracing.batch(self._run.pk, scorer.kind) as counts:
                    retry_on_db_error(partial(scorer.score, claimed))
                    counts[tracing.UNITS] = len(claimed)
                return len(claimed)
        return 0


def _judges_by_endpoint(run: Run, *, by_model: bool) -> list[list[RunJudge]]:
    """The run's judges with an endpoint, grouped by it, because their calls share its slots. With ``by_model`` also by
    model, because a batch has only one."""
    groups: dict[tuple[int | None, str], list[RunJudge]] = {}
    remote = run.judges.exclude(judge_version__endpoint=None)
    for judge in remote.select_related("judge_version__endpoint", "rubric_version").order_by("id"):
        version = judge.judge_version
        groups.setdefault((version.endpoint_id, version.model if by_model else ""), []).append(judge)
    return list(groups.values())


def _has_judge_units(run: Run, judges: Sequence[RunJudge]) -> bool:
    if _claimable_units(run, run_judge__in=judges).exclude(units.on_resting_endpoint()).exists():
        return True
    batches = batch_hooks()
    return batches is not None and batches.has_due(run, judges[0].judge_version)


def _has_questions(run: Run) -> bool:
    claimable = open_questions(run).filter(units.claimable(), run__state=Run.State.RUNNING)
    return claimable.exclude(units.on_resting_endpoint()).exists()


def _collect_answers(run: Run, config: RunConfig, deadline: float, wake: Event) -> Steps[None]:
    version = run.answer_set.system_version
    try:
        client = system_client(version)
    except DomainError as error:
        pause(run, reason=error.code)
        return
    quota_lease = QuotaLease(version.system, run.pk, min(config.max_concurrency, version.system.max_concurrency))
    try:
        quota = retry_on_db_error(quota_lease.renew)
        with CallPool(client, quota.allowance, wake) as pool, tracing.batch(run.pk, WorkUnit.Kind.ASK) as counts:
            session = CollectionSession(
                run=run,
                pool=pool,
                deadline=deadline,
                lease_seconds=settings.CONCORD_LEASE_SECONDS,
                quota_lease=quota_lease,
            )
            counts[tracing.UNITS] = yield from session.steps()
    finally:
        retry_on_db_error(quota_lease.leave)


def _has_embeddings(run: Run) -> bool:
    return _claimable_units(run, kind=WorkUnit.Kind.EMBED).exists()


def _embed_units(run: Run, config: RunConfig, deadline: float, wake: Event) -> Steps[None]:
    try:
        embedder = embedder_of(config.embedding) if config.embedding else None
        tokens = token_model(config.tokens) if config.tokens else None
    except DomainError as error:
        pause(run, reason=error.code)
        return
    with tracing.batch(run.pk, WorkUnit.Kind.EMBED) as counts:
        session = EmbeddingSession(run, embedder, tokens, deadline, wake, budget_guard(run))
        counts[tracing.UNITS] = yield from session.steps()


def _own_metrics(run: Run, deadline: float, wake: Event) -> Steps[None]:
    with PackageProcess() as process:
        session = partial(OwnMetricSession, run, process, deadline, wake)
        yield from _repeat(partial(_has_own_metrics, run), partial(_compute_own_metrics, run, session), deadline)


def _has_own_metrics(run: Run) -> bool:
    return _claimable_units(run, kind=WorkUnit.Kind.OWN).exists()


def _compute_own_metrics(run: Run, make_session: Callable[[], OwnMetricSession]) -> Steps[None]:
    with tracing.batch(run.pk, WorkUnit.Kind.OWN) as counts:
        counts[tracing.UNITS] = yield from make_session().steps()


def _judge_units(run: Run, config: RunConfig, judges: Sequence[RunJudge], deadline: float, wake: Event) -> Steps[None]:
    judge = judges[0].judge_version
    endpoint = judge.endpoint
    if endpoint is None:
        raise ValueError("a judge without an endpoint makes no calls")
    batches = batch_hooks() if config.batch else None
    try:
        client = client_of(judge)
    except DomainError as error:
        pause(run, reason=error.code)
        return
    quota_lease = QuotaLease(endpoint, run.pk, config.max_concurrency)
    quota = retry_on_db_error(quota_lease.renew)
    try:
        with CallPool(client, quota.allowance, wake) as pool, tracing.batch(run.pk, WorkUnit.Kind.JUDGE) as counts:
            session_options: dict[str, Any] = {
                "run": run,
                "judges": judges,
                "response_formats": retry_on_db_error(
                    lambda: {run_judge.pk: response_format_of(run, run_judge.judge_version) for run_judge in judges}
                ),
                "pool": pool,
                "deadline": deadline,
                "lease_seconds": settings.CONCORD_LEASE_SECONDS,
                "cache": cached_replies(judge, use_cache=config.use_cache),
                "quota_lease": quota_lease,
                "budget_guard": budget_guard(run),
            }
            steps = batches.work(judge, session_options) if batches else JudgeSession(**session_options).steps()
            counts[tracing.UNITS] = yield from steps
    finally:
        retry_on_db_error(quota_lease.leave)
