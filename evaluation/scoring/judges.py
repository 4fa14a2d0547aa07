"""The judge step: claimed units become calls, replies become scores, and every call stands in the ledger."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import prefetch_related_objects

from evaluation.judges.models import JudgeVersion
from evaluation.judging.applicability import applicability
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.catalogue import family_metrics
from evaluation.judging.pool import CallPool
from evaluation.judging.prompt import judge_call, repaired
from evaluation.judging.reading import read_reply, reading_outcome
from evaluation.judging.retrying import Defer, GiveUp, NeedsPerson, Retry, decide
from evaluation.judging.rubric import Rubric
from evaluation.runs.lifecycle import pause
from evaluation.runs.models import Run, RunJudge
from evaluation.samples import Result
from evaluation.scores.models import MetricDefinition
from evaluation.scoring import writing
from evaluation.scoring.definitions import definitions
from evaluation.scoring.replies import reply_row
from evaluation.work import units
from evaluation.work.models import Attempt, Reply, WorkUnit
from evaluation.work.patience import patiently

HEARTBEAT_SHARE = 3  # leases are prolonged when a third of their time has passed
WAIT_SECONDS = 0.5  # how long one looks for replies before looking at the run's state again


@dataclass(slots=True)
class InFlight:
    """A unit whose call is out: which attempt it is, and the results that needed no call."""

    unit: WorkUnit
    attempt: Attempt
    call: JudgeCall
    left_out: dict[str, Result]
    claimed_at: float
    earlier: tuple[Outcome, ...] = ()


@dataclass
class JudgeSession:
    """One worker's turn at the units of one judge of a run, until ``deadline`` (monotonic seconds)."""

    run: Run
    run_judge: RunJudge
    pool: CallPool
    deadline: float
    lease_seconds: float
    rng: random.Random = field(default_factory=random.Random)
    calls: int = 0
    _flying: dict[int, InFlight] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.judge: JudgeVersion = self.run_judge.judge_version
        self.rubric = Rubric.model_validate(self.run_judge.rubric_version.spec)
        specs = family_metrics(self.rubric.family)
        self.specs = [s for s in specs if s.name in self.rubric.names]
        self.metrics: dict[str, MetricDefinition] = definitions(s.name for s in self.specs)

    def work(self) -> int:
        """Claim and call until nothing is claimable, the run no longer runs, or time is up; how many units ended."""
        ended = 0
        while True:
            claimed = patiently(self._fill) if self._may_claim() else 0
            if not self._flying:
                if not claimed:
                    return ended
                ended += claimed
                continue
            done = self.pool.collect(WAIT_SECONDS)
            if done:
                ended += self._receive([(self._flying.pop(int(str(key))), reply) for key, reply in done])
            self._prolong()

    def _may_claim(self) -> bool:
        alone = any(flying.unit.tries > units.SUSPECT_TRIES for flying in self._flying.values())
        return self.pool.free > 0 and not alone and time.monotonic() < self.deadline

    def _fill(self) -> int:
        """Claim as many units as there are free places and send their calls; how many were claimed.

        A suspect is claimed when nothing else can be, and nothing is sent beside it.
        """
        judge = [WorkUnit.Kind.JUDGE]
        claimed = units.claim(self.run.pk, judge, self.pool.free, run_judge_id=self.run_judge.pk)
        if not claimed and not self._flying:
            claimed = units.claim(self.run.pk, judge, 1, run_judge_id=self.run_judge.pk, suspects=True)
        prefetch_related_objects(claimed, "answer__question", "answer__contexts", "run_judge")
        first = {a.unit_id: a for a in Attempt.objects.filter(unit__in=claimed, number=1, reply__isnull=True)}
        at_once: list[writing.Outcome] = []
        for unit in claimed:
            outcome = self._send(unit, first[unit.pk])
            if outcome is not None:
                at_once.append(outcome)
                units.mark_unsent(unit)
        if at_once:
            writing.write(at_once)
        return len(claimed)

    def _send(self, unit: WorkUnit, attempt: Attempt) -> writing.Outcome | None:
        """Send the unit's call; its outcome instead where no call is needed."""
        if unit.answer is None:
            return self._outcome(unit, {}, "upstream")
        question, answer = unit.answer.question.read(), unit.answer.read()
        parts = applicability(self.specs, question, answer)
        if unit.answer.status == "failed":
            reason = "upstream: " + unit.answer.reason
            lost = {name: Result.failed(reason) for name in parts.metrics}
            return self._outcome(unit, {**parts.not_applicable, **lost}, reason)
        if not parts.metrics:
            return self._outcome(unit, parts.not_applicable)
        call = judge_call(
            self.rubric, question, answer, parts.metrics, model=self.judge.model, parameters=self.judge.params
        )
        self._flying[unit.pk] = InFlight(unit, attempt, call, parts.not_applicable, time.monotonic())
        self.pool.submit(unit.pk, call)
        self.calls += 1
        return None

    def _outcome(self, unit: WorkUnit, results: dict[str, Result], reason: str = "") -> writing.Outcome:
        return writing.Outcome(unit, {self.metrics[n]: r for n, r in results.items()}, reason)

    def _receive(self, done: list[tuple[InFlight, JudgeReply]]) -> int:
        """Write what came back, all in one transaction, then send the calls that are to be made again."""
        finished: list[writing.Outcome] = []
        replies: list[Reply] = []
        afterwards: list[Callable[[], None]] = []
        for flying, reply in done:
            results = read_reply(reply, self.rubric, flying.call.metrics)
            outcome = reading_outcome(reply, results)
            replies.append(reply_row(flying.attempt, flying.call, reply, outcome, self.judge))
            decision = decide(outcome, flying.attempt.number, reply.retry_after, self.rng, earlier=flying.earlier)
            if outcome is Outcome.OK or isinstance(decision, GiveUp):
                finished.append(self._outcome(flying.unit, {**flying.left_out, **results}))
            else:
                afterwards.append(self._follow_up(flying, outcome, decision))

        def write() -> None:
            with transaction.atomic():
                # A repeated write after an unclear commit finds the replies there already.
                Reply.objects.bulk_create(replies, ignore_conflicts=True)
                writing.write(finished)

        patiently(write)
        for step in afterwards:
            patiently(step)
        return len(finished)

    def _follow_up(
        self, flying: InFlight, outcome: Outcome, decision: Retry | Defer | GiveUp | NeedsPerson
    ) -> Callable[[], None]:
        if isinstance(decision, NeedsPerson):
            return lambda: self._pause(flying, decision.reason)
        seconds = decision.seconds if isinstance(decision, Retry | Defer) else 0.0
        if isinstance(decision, Defer) or time.monotonic() + seconds > self.deadline:
            return lambda: self._give_back(flying, seconds)
        return lambda: self._again(flying, outcome, seconds)

    def _pause(self, flying: InFlight, reason: str) -> None:
        units.give_back(flying.unit)
        pause(self.run, reason=reason)

    def _give_back(self, flying: InFlight, seconds: float) -> None:
        units.give_back(flying.unit, after_seconds=seconds)

    def _again(self, flying: InFlight, outcome: Outcome, seconds: float) -> None:
        """The next attempt, written before it is sent; a run that was paused or cancelled meanwhile gets it back."""
        unit, number = flying.unit, flying.attempt.number + 1
        if not units.held(unit).filter(run__state=Run.State.RUNNING).exists():
            units.give_back(unit)
            return
        attempt, _ = Attempt.objects.get_or_create(
            unit=unit, fence=unit.fence, number=number, defaults={"round": unit.round}
        )
        call = repaired(flying.call, outcome) if outcome in {Outcome.PARSE, Outcome.TRUNCATED} else flying.call
        earlier = (*flying.earlier, outcome)
        self._flying[unit.pk] = InFlight(unit, attempt, call, flying.left_out, flying.claimed_at, earlier)
        self.pool.submit(unit.pk, call, delay=seconds)
        self.calls += 1

    def _prolong(self) -> None:
        """Heartbeat of the leases of calls that have been out for a while."""
        now = time.monotonic()
        old = [f for f in self._flying.values() if now - f.claimed_at > self.lease_seconds / HEARTBEAT_SHARE]
        if old:
            patiently(lambda: units.extend([f.unit for f in old]))
            for flying in old:
                flying.claimed_at = now
