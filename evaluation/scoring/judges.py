"""The judge step: claimed units become calls, replies become scores, and every call stands in the ledger."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import prefetch_related_objects

from evaluation.judges.models import JudgeVersion
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.catalogue import family_named
from evaluation.judging.pool import CallPool
from evaluation.judging.prompt import repaired
from evaluation.judging.reading import hear
from evaluation.judging.retrying import Defer, GiveUp, NeedsPerson, Retry, decide
from evaluation.judging.rubric import Rubric
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.runs.config import RunConfig
from evaluation.runs.lifecycle import pause
from evaluation.runs.models import Run, RunJudge
from evaluation.scores.models import MetricDefinition
from evaluation.scoring import writing
from evaluation.scoring.conversations import Conversation, Replies, Setting, earlier_replies
from evaluation.scoring.definitions import definitions
from evaluation.scoring.replies import reply_row
from evaluation.work import units
from evaluation.work.models import Attempt, Reply, WorkUnit
from evaluation.work.patience import patiently

HEARTBEAT_SHARE = 3  # leases are prolonged when a third of their time has passed
WAIT_SECONDS = 0.5  # how long one looks for replies before looking at the run's state again


@dataclass(slots=True)
class InFlight:
    """A unit whose call is out: which attempt it is, the conversation it belongs to, and how earlier tries of the same
    request ended."""

    unit: WorkUnit
    attempt: Attempt
    talk: Conversation
    call: JudgeCall
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
        rubric = Rubric.model_validate(self.run_judge.rubric_version.spec)
        family, k = family_named(rubric.family), RunConfig.model_validate(self.run.config).k
        settings = rule_settings(ProfileSpec.model_validate(self.run.profile_version.spec), k=k)
        self.setting = Setting(family, rubric, family.given, settings, self.judge)
        self.metrics: dict[str, MetricDefinition] = definitions(spec.name for spec in family.given)

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
        heard = earlier_replies(claimed)
        at_once: list[writing.Outcome] = []
        for unit in claimed:
            outcome = self._send(unit, first[unit.pk], heard.get(unit.pk, {}))
            if outcome is not None:
                at_once.append(outcome)
                units.mark_unsent(unit)
        if at_once:
            writing.write(at_once)
        return len(claimed)

    def _send(self, unit: WorkUnit, attempt: Attempt, replies: Replies) -> writing.Outcome | None:
        """Send the unit's first call; its outcome instead where no call is needed."""
        talk = Conversation(self.setting, unit, replies)
        if talk.call is None:
            return self._outcome(unit, talk)
        self._fly(InFlight(unit, attempt, talk, talk.call, time.monotonic()))
        return None

    def _fly(self, flying: InFlight, delay: float = 0.0) -> None:
        self._flying[flying.unit.pk] = flying
        self.pool.submit(flying.unit.pk, flying.call, delay=delay)
        self.calls += 1

    def _outcome(self, unit: WorkUnit, talk: Conversation) -> writing.Outcome:
        results = {self.metrics[name]: result for name, result in talk.results.items()}
        return writing.Outcome(unit, results, talk.reason)

    def _receive(self, done: list[tuple[InFlight, JudgeReply]]) -> int:
        """Write what came back, all in one transaction, then send the calls that follow; how many units ended."""
        finished: list[writing.Outcome] = []
        replies: list[Reply] = []
        afterwards: list[Callable[[], None]] = []
        for flying, reply in done:
            outcome = hear(reply, flying.call.ask).outcome
            replies.append(reply_row(flying.attempt, flying.call, reply, outcome, self.judge))
            tries = len(flying.earlier) + 1
            decision = decide(outcome, tries, reply.retry_after, self.rng, earlier=flying.earlier)
            if outcome is not Outcome.OK and not isinstance(decision, GiveUp):
                afterwards.append(self._follow_up(flying, outcome, decision))
                continue
            flying.talk.hear(reply)
            if flying.talk.call is None:
                finished.append(self._outcome(flying.unit, flying.talk))
            else:
                afterwards.append(self._next(flying, flying.talk.call))

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

    def _next(self, flying: InFlight, call: JudgeCall) -> Callable[[], None]:
        """The conversation's next call; when time is up the unit goes back, and whoever takes it goes on from here."""
        if time.monotonic() > self.deadline:
            return lambda: self._give_back(flying, 0.0)
        return lambda: self._go_on(flying, call, ())

    def _again(self, flying: InFlight, outcome: Outcome, seconds: float) -> None:
        call = repaired(flying.call, outcome) if outcome in {Outcome.PARSE, Outcome.TRUNCATED} else flying.call
        self._go_on(flying, call, (*flying.earlier, outcome), seconds)

    def _go_on(self, flying: InFlight, call: JudgeCall, earlier: tuple[Outcome, ...], seconds: float = 0.0) -> None:
        """The unit's next attempt, written before it is sent; a run that was paused or cancelled meanwhile gets the
        unit back."""
        unit = flying.unit
        if not units.held(unit).filter(run__state=Run.State.RUNNING).exists():
            units.give_back(unit)
            return
        attempt, _ = Attempt.objects.get_or_create(
            unit=unit, fence=unit.fence, number=flying.attempt.number + 1, defaults={"round": unit.round}
        )
        self._fly(InFlight(unit, attempt, flying.talk, call, flying.claimed_at, earlier), seconds)

    def _prolong(self) -> None:
        """Heartbeat of the leases of calls that have been out for a while."""
        now = time.monotonic()
        old = [f for f in self._flying.values() if now - f.claimed_at > self.lease_seconds / HEARTBEAT_SHARE]
        if old:
            patiently(lambda: units.extend([f.unit for f in old]))
            for flying in old:
                flying.claimed_at = now
