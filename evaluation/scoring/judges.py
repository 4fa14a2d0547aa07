"""The judge step: claimed units become calls, replies become scores, and every call stands in the ledger.

While calls are out, the next units are claimed and their requests made ready, so that a place that becomes free is
filled at once; what came back is written in batches, each in one transaction.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from evaluation.judging.calls import JudgeReply, Rung
from evaluation.judging.catalogue import family_for
from evaluation.judging.pool import CallPool
from evaluation.judging.prompt import request_hash
from evaluation.judging.reading import hear
from evaluation.judging.retrying import LONGEST_WAIT_IN_WORKER
from evaluation.judging.rubric import Rubric
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.runs.config import RunConfig
from evaluation.runs.lifecycle import pause
from evaluation.runs.models import Run, RunJudge
from evaluation.scores.models import MetricDefinition
from evaluation.scoring import writing
from evaluation.scoring.conversations import Conversation, Setting, earlier_replies
from evaluation.scoring.definitions import define
from evaluation.scoring.flights import Flight, Sorted, sort_reply, trace
from evaluation.scoring.kept_replies import KeptReplies
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.work import units
from evaluation.work.models import Attempt, WorkUnit
from evaluation.work.patience import patiently
from evaluation.work.shares import RENEW_SECONDS, WAITING_SECONDS, Share
from evaluation.work.storage import STORAGE_FULL, is_short_of_space
from evaluation.work.tracing import spans

HEARTBEAT_SHARE = 3  # leases are prolonged when a third of their time has passed
WAIT_SECONDS = 0.5  # how long one waits for replies before looking at the run again
TICK_SECONDS = 1.0
LOOK_SECONDS = 0.1  # how often one looks at the run's state
REST_SLACK_SECONDS = 0.5  # a rest that is longer by less is not told anew
DRY_SECONDS = 0.5  # how long one does not ask for units after there were none
MOST_IN_HANDS = 6  # units per place that one holds at most, those that wait to be tried again included


@dataclass
class JudgeSession:
    """One worker's turn at the units of some judges of a run that share a client, until ``deadline`` (monotonic
    seconds)."""

    run: Run
    judges: Sequence[RunJudge]
    pool: CallPool
    deadline: float
    lease_seconds: float
    rungs: Mapping[int, Rung] = field(default_factory=dict)  # by judge of the run; the best one where none is named
    kept: KeptReplies | None = None  # replies that were paid for; none where every call shall be made
    share: Share | None = None
    tick: Callable[[], None] | None = None  # for whoever watches, about once a second
    rng: random.Random = field(default_factory=random.Random)
    ended: int = 0
    _hands: dict[int, Flight] = field(default_factory=dict)
    _later: list[tuple[float, int, Flight]] = field(default_factory=list)
    _asked: set[str] = field(default_factory=set)  # digests of the calls that are out
    _held: dict[str, list[Flight]] = field(default_factory=dict)  # identical calls that wait for them

    def __post_init__(self) -> None:
        self._order = count()
        self._judges = {judge.pk: judge for judge in self.judges}
        self._looked_at = self._ticked_at = self._dry_until = self._renew_at = float("-inf")
        self._known_rest = float("-inf")  # until when, in monotonic seconds, every worker knows that it rests
        self._stopping = False
        config = RunConfig.model_validate(self.run.config)
        rules = rule_settings(ProfileSpec.model_validate(self.run.profile_version.spec), k=config.k)
        rules = replace(rules, embeds=config.embedding is not None)
        self._settings: dict[int, Setting] = {}
        self._metrics: dict[int, dict[str, MetricDefinition]] = {}
        for judge in self.judges:
            rubric = Rubric.model_validate(judge.rubric_version.spec)
            family, rung = family_for(rubric), self.rungs.get(judge.pk, Rung.JSON_SCHEMA)
            self._settings[judge.pk] = Setting(family, rubric, family.given, rules, judge.judge_version, rung)
            self._metrics[judge.pk] = {spec.name: define(spec) for spec in family.given}

    def work(self) -> int:
        """Claim and call until nothing is claimable, the run no longer runs, or time is up; how many units ended."""
        try:
            while self._turn():
                pass
        finally:
            # Only an interruption leaves something here: it must not wait for its lease to lapse.
            self._release(self._hands.values())
        return self.ended

    def _turn(self) -> bool:
        """One round: claim, send, collect, write. False when there is nothing left to do."""
        self._look()
        if self._stopping:
            self._put_down()
        elif self._wants() > 0:
            patiently(self._fill)
        self._send_due()
        if not self._hands:
            return self._queues()
        done = self.pool.collect(self._patience())
        if done:
            self._receive([(self._hands[int(str(key))], reply) for key, reply in done])
        self._prolong()
        return True

    def _queues(self) -> bool:
        """With nothing in hands: whether to wait for a place, which others have, while there is something to do."""
        if self._stopping or self.pool.pace.limit.most or not patiently(self._is_claimable):
            return False
        time.sleep(WAITING_SECONDS)
        return True

    def _is_claimable(self) -> bool:
        return WorkUnit.objects.filter(units.claimable(), run_id=self.run.pk, run_judge__in=self.judges).exists()

    def _look(self) -> None:
        """Whether one has to stop: time is up, or the run no longer runs."""
        now = time.monotonic()
        if now >= self.deadline:
            self._stopping = True
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            if not self._stopping and is_short_of_space():
                patiently(lambda: pause(self.run, reason=STORAGE_FULL))
            if not patiently(self._runs):
                self._stopping = True
        if self.tick is not None and now - self._ticked_at >= TICK_SECONDS:
            self._ticked_at = now
            self.tick()
        if self.share is not None:
            self._keep_share(self.share)

    def _keep_share(self, share: Share) -> None:
        """Tell the others of a rest the endpoint asked for, hear of theirs, and take the fair part of its places."""
        now = time.monotonic()
        rest = self.pool.resting
        until = now + rest
        if rest and until > self._known_rest + REST_SLACK_SECONDS:
            patiently(lambda: share.rest(rest))
            self._known_rest = until
        if now >= self._renew_at:
            granted = patiently(lambda: share.renew(self.pool.sent, self.pool.pace.limit.now))
            self.pool.allow(granted.allowance, granted.rest_seconds)
            self._known_rest = max(self._known_rest, now + granted.rest_seconds)
            self._renew_at = now + (RENEW_SECONDS if granted.complete else WAITING_SECONDS)
            until = max(until, now + granted.rest_seconds)
        if until - now > LONGEST_WAIT_IN_WORKER:
            self._stopping = True

    def _runs(self) -> bool:
        return Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING).exists()

    def _patience(self) -> float:
        """How long to wait for replies: what waits in the pool must not be sent long after one should have stopped."""
        now = time.monotonic()
        longest = LOOK_SECONDS if self.pool.waiting else WAIT_SECONDS
        until = [self._later[0][0]] if self._later else []
        until += [] if self._stopping else [self.deadline]
        return max(0.001, min(longest, *(moment - now for moment in until))) if until else longest

    def _wants(self) -> int:
        """How many units to claim: as many as fill the places twice, so that one is always ready when one ends."""
        most = self.pool.pace.limit.most
        if time.monotonic() < self._dry_until or any(f.unit.tries > units.SUSPECT_TRIES for f in self._hands.values()):
            return 0
        ready = self.pool.in_hands
        room = MOST_IN_HANDS * most - len(self._hands)
        if not ready:
            return min(most, room)  # the places first
        wanted = min(2 * most - ready, room)
        return wanted if wanted >= max(1, most // 4) else 0

    def _fill(self) -> None:
        """Claim units and submit their first calls.

        A suspect is claimed when nothing else can be, and nothing is sent beside it.
        """
        claimed = self._claim(self._wants())
        if not claimed and not self._hands:
            claimed = self._claim(1, suspects=True)
        if not claimed:
            self._dry_until = time.monotonic() + DRY_SECONDS
            return
        attempts, heard = units.first_attempts(claimed), earlier_replies(claimed)
        ready: list[Flight] = []
        at_once: list[writing.Outcome] = []
        unsent: list[int] = []
        now = time.monotonic()
        for unit in claimed:
            if (mine := self._hands.get(unit.pk)) is not None:
                # Its lease lapsed while its call is out (a clock that jumped, a machine that slept): that call counts.
                mine.unit, mine.claimed_at = unit, now
                unsent.append(attempts[unit.pk])
                continue
            judge_id = unit.run_judge_id or 0
            talk = Conversation(self._settings[judge_id], unit, heard.get(unit.pk, {}))
            attempt_id, metrics = attempts[unit.pk], self._metrics[judge_id]
            if talk.call is not None:
                ready.append(Flight(unit, talk, metrics, attempt_id, talk.call, now))
                continue
            results = {metrics[name]: result for name, result in talk.results.items()}
            at_once.append(writing.Outcome(unit, results, talk.reason))
            unsent.append(attempt_id)
        if unsent:
            with transaction.atomic():
                units.mark_unsent(unsent)
                self.ended += writing.write(at_once)
        self._submit(ready)

    def _claim(self, size: int, *, suspects: bool = False) -> list[WorkUnit]:
        claimed = units.claim(
            self.run.pk,
            [WorkUnit.Kind.JUDGE],
            size,
            run_judge_ids=list(self._judges),
            suspects=suspects,
            related=["answer__question"],
        )
        for unit in claimed:
            unit.run_judge = self._judges[unit.run_judge_id or 0]
        prefetch_related_objects([u.answer for u in claimed if u.answer is not None], "contexts")
        return claimed

    def _submit(self, flights: Sequence[Flight]) -> None:
        """Send the calls, but for those that were paid for already; one identical to a call that is out waits."""
        self._hands |= {flight.unit.pk: flight for flight in flights}
        for flight in flights:
            flight.digest = request_hash(flight.call, repeat=flight.unit.repeat)
        kept, known, sending = self.kept, dict[str, JudgeReply](), list[Flight]()
        if kept is not None and flights:
            known = patiently(lambda: kept.find([flight.digest for flight in flights]))
        for flight in flights:
            if flight.digest in known:
                continue
            if kept is not None and flight.digest in self._asked:
                self._held.setdefault(flight.digest, []).append(flight)
                continue
            self._asked.add(flight.digest)
            sending.append(flight)
        self.pool.submit((flight.unit.pk, flight.call) for flight in sending)
        if known:
            self._receive([(flight, known[flight.digest]) for flight in flights if flight.digest in known])

    def _go_on_held(self, done: Iterable[Flight]) -> None:
        """Look again at the calls that waited for identical ones: they are answered by them, or sent."""
        waiting: list[Flight] = []
        for flight in done:
            self._asked.discard(flight.digest)
            waiting += self._held.pop(flight.digest, [])
        if self._stopping:
            self._release(waiting, unsent=waiting)
        elif waiting:
            self._submit(waiting)

    def _receive(self, done: Sequence[tuple[Flight, JudgeReply]]) -> None:
        """Write what came back, with the attempts that follow at once, in one transaction; then send those."""
        after, replies, at = Sorted(), [], timezone.now()
        told = spans()
        for flight, reply in done:
            heard = hear(reply, flight.call.ask, flight.call.rung)
            setting = self._settings[flight.unit.run_judge_id or 0]
            replies.append(
                reply_row(
                    *(flight.attempt_id, flight.digest, reply, heard),
                    model=setting.judge.model,
                    at=at,
                )
            )
            if told is not None and reply.ended_at:  # the others, out of the ledger or of the baseline, were no calls
                trace(flight, reply, heard.outcome, told)
            sort_reply(after, flight, reply, heard, self.rng)
        outcomes, tries = [flight.outcome for flight in after.finished], count()

        def write() -> None:
            with transaction.atomic():
                insert_replies(replies, again=next(tries) > 0)
                writing.write(outcomes)
                for seconds, flight in after.deferred:
                    units.give_back(flight.unit, after_seconds=seconds)
                units.give_all_back([flight.unit for flight in after.stopped])

        patiently(write)
        for flight in (*after.finished, *after.stopped, *(flight for _, flight in after.deferred)):
            del self._hands[flight.unit.pk]
        self.ended += len(after.finished)
        if after.needs_person:
            patiently(lambda: pause(self.run, reason=after.needs_person))
            self._stopping = True
        now = time.monotonic()
        for seconds, flight in (*((0.0, flight) for flight in after.go_on), *after.again):
            heapq.heappush(self._later, (now + seconds, next(self._order), flight))
        self._go_on_held([flight for flight, _ in done])

    def _send_due(self) -> None:
        """Send the calls that follow an earlier one of their unit, each attempt written before it is sent."""
        now = time.monotonic()
        due: list[Flight] = []
        while self._later and self._later[0][0] <= now:
            due.append(heapq.heappop(self._later)[2])
        if due:
            self._submit(patiently(lambda: self._attempted(due)))

    def _attempted(self, flights: Sequence[Flight]) -> list[Flight]:
        """The flights that may go on, each with its next attempt; a run that was paused or cancelled meanwhile gets
        the units back."""
        with transaction.atomic():
            kept = units.still_held([flight.unit for flight in flights])
            if not self._runs():
                units.give_all_back(kept)
                kept = []
            ours = {unit.pk for unit in kept}
            going = [flight for flight in flights if flight.unit.pk in ours]
            rows = [Attempt(unit=f.unit, fence=f.unit.fence, round=f.unit.round, number=f.number + 1) for f in going]
            made = Attempt.objects.bulk_create(rows)
        for flight in flights:
            if flight.unit.pk not in ours:
                del self._hands[flight.unit.pk]
        for flight, attempt in zip(going, made, strict=True):
            flight.attempt_id, flight.number = attempt.pk, attempt.number
        return going

    def _put_down(self) -> None:
        """Give back what is not out: calls that wait in the pool, and those that wait to be tried again."""
        waiting = [self._hands[int(str(key))] for key in self.pool.withdraw()]
        waiting += [flight for held in self._held.values() for flight in held]
        self._held.clear()
        later = [flight for _, _, flight in self._later]
        if waiting or later:
            self._release((*waiting, *later), unsent=waiting)
        self._later.clear()

    def _release(self, flights: Iterable[Flight], unsent: Sequence[Flight] = ()) -> None:
        flights = list(flights)
        if not flights:
            return

        def release() -> None:
            with transaction.atomic():
                units.mark_unsent([flight.attempt_id for flight in unsent])
                units.give_all_back([flight.unit for flight in flights])

        patiently(release)
        for flight in flights:
            del self._hands[flight.unit.pk]

    def _prolong(self) -> None:
        """Heartbeat of the leases of units that have been in hands for a while."""
        now = time.monotonic()
        old = [f for f in self._hands.values() if now - f.claimed_at > self.lease_seconds / HEARTBEAT_SHARE]
        if old:
            patiently(lambda: units.extend([flight.unit for flight in old]))
            for flight in old:
                flight.claimed_at = now
