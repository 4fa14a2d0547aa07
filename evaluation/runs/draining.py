"""Draining a run: its preflight, claiming and doing its units until none is left or time is up, and its end.
Needs no queue."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.core.samples import Result
from evaluation.extensions import OFF, batch_hooks
from evaluation.judges.clients import client_of
from evaluation.judges.embeddings import embedder_of, tokens_of
from evaluation.judges.preflight import pin, pinned_columns
from evaluation.judging.calls import Rung
from evaluation.judging.probing import Probed
from evaluation.models import JudgeVersion, Preflight, Run, RunEvent, RunJudge, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import Allowance
from evaluation.network.pool import CallPool
from evaluation.runs.budgets import purse_of
from evaluation.scoring import writing
from evaluation.scoring.embeddings import EmbeddingSession
from evaluation.scoring.judges import JudgeSession
from evaluation.scoring.replies import kept_for
from evaluation.scoring.rules import RULE_BATCH, Rules
from evaluation.scoring.writing import (
    derive,
    expected_metrics,
    incomplete_metrics,
    judge_together,
)
from evaluation.systems.asking import AskSession, complete_answers, fail_questions, open_questions
from evaluation.systems.services import client_of as system_client
from evaluation.worker import dispatch, tracing, units
from evaluation.worker.database import STORAGE_FULL, is_short_of_space, look_again, retry_on_db_error, try_writing
from evaluation.worker.lifecycle import RunConfig, begin, pause, unpinned
from evaluation.worker.shares import Granted, Share
from evaluation.worker.units import State


def preflight(run: Run, deadline: float) -> None:
    """Pin every judge of the run that is not pinned yet, then let the run begin; pause it with the reason where one
    cannot be. A run in another state is left alone, and so is a server that asked for more time.

    ``deadline`` is in monotonic seconds: when it is over the rest is left to the next worker.
    """
    waits = Preflight.objects.filter(run=run, retry_at__gt=Now())
    if run.state != Run.State.PREFLIGHT or retry_on_db_error(waits.exists):
        return
    for judge in retry_on_db_error(lambda: unpinned(run)):
        if not pin(judge, _RunPins(run, judge), deadline, random.Random()):
            return
    retry_on_db_error(lambda: begin(run))


def rung_of(run: Run, judge: JudgeVersion) -> Rung:
    """The way of asking that is pinned for the run. The baseline is not asked; a run made before there were preflights
    asks by strict schema, as it did then."""
    pinned = Preflight.objects.filter(run=run, judge_version=judge, outcome=Outcome.OK).values_list("rung", flat=True)
    return Rung(next(iter(pinned), Rung.JSON_SCHEMA))


@dataclass(frozen=True, slots=True)
class _RunPins:
    """A judge's rows in a run."""

    run: Run
    judge: JudgeVersion

    @property
    def run_id(self) -> int:
        return self.run.pk

    def tries(self) -> int:
        by_hand = RunEvent.objects.filter(run=self.run, verb__in=["started", "resumed", "retried"])
        last = by_hand.order_by("-id").first()
        rows = Preflight.objects.filter(run=self.run, judge_version=self.judge)
        return (rows.filter(created_at__gte=last.created_at) if last else rows).count()

    def keep(self, found: Probed, wait: float | None) -> None:
        """Where two workers pinned at once the first one's rung holds for both."""
        # A mean of repeats is another judge than a single verdict.
        repeat = RunConfig.model_validate(self.run.config).repeat
        beside = [repeat] if repeat > 1 else []
        row = Preflight(run=self.run, **pinned_columns(self.judge, found, wait, beside))
        Preflight.objects.bulk_create([row], ignore_conflicts=found.outcome == Outcome.OK)

    def stop(self, reason: str) -> None:
        pause(self.run, reason=reason)


CRASH_LOOP = "crash_loop"
UPSTREAM = "upstream"


def park_crash_loops(run: Run) -> int:
    """Fail the units whose workers died again and again, so that the rest of the run completes."""
    failed = Result.failed(CRASH_LOOP)
    outcomes = [
        writing.Outcome(unit, dict.fromkeys(expected_metrics(run, unit), failed), CRASH_LOOP)
        for unit in units.crash_looping().filter(run=run).exclude(kind=WorkUnit.Kind.ASK)
    ]
    return writing.write(outcomes) if outcomes else 0


def give_up_questions(run: Run) -> int:
    """Fail the questions whose workers died again and again, with an answer that says so."""
    return fail_questions(run, list(units.crash_looping().filter(run=run, kind=WorkUnit.Kind.ASK)), CRASH_LOOP)


def fail_dependents(run: Run) -> int:
    """Fail the blocked units whose predecessor failed."""
    waiting = WorkUnit.objects.filter(run=run, state=State.BLOCKED, needs__state=State.FAILED)
    ids = list(waiting.values_list("pk", flat=True))
    blocked = WorkUnit.objects.filter(pk__in=ids, state=State.BLOCKED)
    return blocked.update(state=State.FAILED, reason=UPSTREAM, finished_at=Now()) if ids else 0


def settle(run: Run) -> bool:
    """Complete a running run that has no open unit, or mark it incomplete with the metrics that say why."""
    fail_dependents(run)
    if units.open_units(run.pk).exists():
        return False
    look_again(run)
    complete_answers(run)
    judge_together(run)
    derive(run)
    short = incomplete_metrics(run)
    state = Run.State.INCOMPLETE if short else Run.State.COMPLETED
    reason = ", ".join(f"{c.metric}: {c.lost}/{c.scored + c.lost}" for c in short)
    with transaction.atomic():
        moved = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
            state=state, reason=reason, finished_at=Now()
        )
        if moved:
            RunEvent.objects.create(run=run, verb=state, reason=reason)
            audit.record(None, f"run.{state}", run)
    run.refresh_from_db()
    return bool(moved)


STARTED = (Run.State.PREFLIGHT, Run.State.RUNNING)
UNWRITABLE_SECONDS = 20.0  # how long a worker that begins waits for a database that takes no writing


def drain(run_id: int, *, seconds: float, tick: Callable[[], None] | None = None) -> Run:
    """Work on a run for up to ``seconds``; ring again when claimable units remain, settle it when none is open.

    ``tick`` is called about once a second while calls are made, for whoever shows how far the run is.

    :raises Refused: ``database_read_only`` or ``database_full`` where nothing can be written; the run stays as it is.
    """
    try:
        with tracing.spanned("run", {"concord.run.id": run_id}):
            return _drain(run_id, time.monotonic() + seconds, tick)
    finally:
        if found := tracing.spans():
            found.flush()


def _drain(run_id: int, deadline: float, tick: Callable[[], None] | None) -> Run:
    run = retry_on_db_error(
        lambda: Run.objects.select_related("profile_version", "answer_set__system_version__system").get(pk=run_id)
    )
    config = RunConfig.model_validate(run.config)
    # Before anything is paid for that could not be written down.
    retry_on_db_error(try_writing, seconds=UNWRITABLE_SECONDS)
    if run.state == Run.State.RUNNING and is_short_of_space():
        retry_on_db_error(lambda: pause(run, reason=STORAGE_FULL))
        return run
    if config.batch and batch_hooks() is None:  # single calls would cost more than was agreed to
        retry_on_db_error(lambda: pause(run, reason=f"{OFF}: batches"))
        return run
    purse = purse_of(run)
    pays = purse and run.state in STARTED and retry_on_db_error(partial(_may_pay, run))
    if purse and pays and (reason := retry_on_db_error(purse.stops)):
        retry_on_db_error(lambda: pause(run, reason=reason))
        return run
    preflight(run, deadline)
    retry_on_db_error(lambda: give_up_questions(run))
    retry_on_db_error(lambda: park_crash_loops(run))
    retry_on_db_error(lambda: fail_dependents(run))
    if time.monotonic() < deadline and retry_on_db_error(partial(_has_questions, run)):
        _ask(run, config, deadline, tick)
    rules = _RulesBeside(run)
    if time.monotonic() < deadline and retry_on_db_error(partial(_has_embeddings, run)):
        _embed(run, deadline)
    for judges in retry_on_db_error(lambda: _judges(run, by_model=config.batch)):
        if time.monotonic() < deadline and retry_on_db_error(partial(_has_work, run, judges)):
            _judge(run, config, judges, deadline, tick, rules)
    while time.monotonic() < deadline and rules.many():
        pass
    # What judges wrote may be embedded now.
    if time.monotonic() < deadline and retry_on_db_error(partial(_has_embeddings, run)):
        _embed(run, deadline)
    retry_on_db_error(lambda: settle(run))
    if run.state == Run.State.RUNNING and retry_on_db_error(lambda: _claimable(run).exclude(units.resting()).exists()):
        retry_on_db_error(lambda: dispatch.ring(run_id))
    return run


def _may_pay(run: Run) -> bool:
    """Whether open steps of the run may call somebody who is paid."""
    return units.open_units(run.pk).filter(kind__in=[WorkUnit.Kind.JUDGE, WorkUnit.Kind.EMBED]).exists()


def _claimable(run: Run, **which: Any) -> QuerySet[WorkUnit]:
    """The units of a running run that could be claimed, those of a resting endpoint included."""
    return WorkUnit.objects.filter(units.claimable(), run_id=run.pk, run__state=Run.State.RUNNING, **which)


WHILE_CALLS_ARE_OUT = 40  # answers at a time, so that what comes back does not wait long


class _RulesBeside:
    """The rules of a run, a few answers at a time; what they go by is made ready when it is first needed."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def _rules(self) -> Rules:
        return Rules(self._run)

    def __call__(self) -> int:
        """Claim and score while calls are out; how many answers, 0 where none is left. What killed a worker before is
        left alone: it would take the calls along."""
        return retry_on_db_error(partial(self._once, WHILE_CALLS_ARE_OUT))

    def many(self) -> int:
        """The same while no calls are out, more of them at a time, and in the end also what killed a worker before."""
        return retry_on_db_error(partial(self._once, RULE_BATCH)) or retry_on_db_error(partial(self._once, 1, True))

    def _once(self, size: int, suspects: bool = False) -> int:
        claimed = units.claim(self._run.pk, [WorkUnit.Kind.RULES], size, suspects=suspects)
        if claimed:
            with tracing.batch(self._run.pk, WorkUnit.Kind.RULES) as counts:
                self._rules.score(claimed)
                counts[tracing.UNITS] = len(claimed)
        return len(claimed)


def _judges(run: Run, *, by_model: bool) -> list[list[RunJudge]]:
    """The run's judges, those at one endpoint together: their calls share its places. ``by_model`` parts those of
    several models, since a batch has one."""
    found: dict[tuple[int | None, str], list[RunJudge]] = {}
    for judge in run.judges.select_related("judge_version__endpoint", "rubric_version").order_by("id"):
        version = judge.judge_version
        found.setdefault((version.endpoint_id, version.model if by_model else ""), []).append(judge)
    return list(found.values())


def _has_work(run: Run, judges: Sequence[RunJudge]) -> bool:
    if _claimable(run, run_judge__in=judges).exclude(units.resting()).exists():
        return True
    batches = batch_hooks()
    return batches is not None and batches.has_due(run, judges[0].judge_version)


def _has_questions(run: Run) -> bool:
    mine = open_questions(run).filter(units.claimable(), run__state=Run.State.RUNNING)
    return mine.exclude(units.resting()).exists()


def _ask(run: Run, config: RunConfig, deadline: float, tick: Callable[[], None] | None) -> None:
    """Ask the system what can be asked."""
    version = run.answer_set.system_version
    try:
        client = system_client(version)
    except Refused as refused:
        pause(run, reason=refused.code)
        return
    share = Share(version.system, run.pk, min(config.max_concurrency, version.system.max_concurrency))
    try:
        granted = retry_on_db_error(share.renew)
        with CallPool(client, granted.allowance) as pool, tracing.batch(run.pk, WorkUnit.Kind.ASK) as counts:
            session = AskSession(
                run=run,
                pool=pool,
                deadline=deadline,
                lease_seconds=settings.CONCORD_LEASE_SECONDS,
                share=share,
                tick=tick,
            )
            counts[tracing.UNITS] = session.work()
    finally:
        retry_on_db_error(share.leave)


def _has_embeddings(run: Run) -> bool:
    return _claimable(run, kind=WorkUnit.Kind.EMBED).exists()


def _embed(run: Run, deadline: float) -> None:
    config = RunConfig.model_validate(run.config)
    try:
        embedder = embedder_of(config.embedding) if config.embedding else None
        tokens = tokens_of(config.tokens) if config.tokens else None
    except Refused as refused:
        pause(run, reason=refused.code)
        return
    with tracing.batch(run.pk, WorkUnit.Kind.EMBED) as counts:
        counts[tracing.UNITS] = EmbeddingSession(run, embedder, tokens, deadline, purse_of(run)).work()


def _judge(
    run: Run,
    config: RunConfig,
    judges: Sequence[RunJudge],
    deadline: float,
    tick: Callable[[], None] | None,
    beside: Callable[[], int],
) -> None:
    judge = judges[0].judge_version
    batches = batch_hooks() if config.batch and judge.endpoint else None
    try:
        client = client_of(judge)
    except Refused as refused:
        pause(run, reason=refused.code)
        return
    share = Share(judge.endpoint, run.pk, config.max_concurrency) if judge.endpoint else None
    granted = retry_on_db_error(share.renew) if share else Granted(Allowance(config.max_concurrency))
    try:
        with CallPool(client, granted.allowance) as pool, tracing.batch(run.pk, WorkUnit.Kind.JUDGE) as counts:
            shared: dict[str, Any] = {
                "run": run,
                "judges": judges,
                "rungs": retry_on_db_error(lambda: {one.pk: rung_of(run, one.judge_version) for one in judges}),
                "pool": pool,
                "deadline": deadline,
                "lease_seconds": settings.CONCORD_LEASE_SECONDS,
                "kept": kept_for(judge, use_cache=config.use_cache),
                "share": share,
                "tick": tick,
                "beside": beside,
                "purse": purse_of(run) if judge.endpoint else None,
            }
            counts[tracing.UNITS] = batches.work(judge, shared) if batches else JudgeSession(**shared).work()
    finally:
        if share:
            retry_on_db_error(share.leave)
