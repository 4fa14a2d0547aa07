"""A judge's turn at pairs: the same calls as for scores, in the pairs' own ledger, by one process at a time.

A conversation is about one pair: A first, then B first; a failed order ends it. What is left to do follows from the
rows alone: a pair without a preference of the present round is asked about, calls of the round that were answered are
not made again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q
from django.db.models.functions import Now

from contrib.pairs.models import Pair, PairAttempt, PairJudging, PairReply, PairSet, Preference
from contrib.pairs.pairwise import METRIC, Joined, joined, pairwise_ask, read_preference
from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import Heard, JudgeCall, JudgeReply, Rung
from evaluation.judging.prompt import hear, judge_call, request_hash
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, RubricVersion
from evaluation.network.outcomes import Outcome
from evaluation.scoring.replies import Flight, kept_reply
from evaluation.scoring.sessions import CallSession
from evaluation.worker.units import MAX_TRIES, SUSPECT_TRIES

REPEAT = 1  # each order is asked once


class Setting(NamedTuple):
    """What all conversations of a comparison share."""

    judge: JudgeVersion
    rubric: Rubric
    rung: Rung


class PairTalk:
    """``call`` is the next call to make, ``None`` at the end; ``results`` are the orders heard so far. Calls that the
    ledger has a reply to are heard at once."""

    def __init__(self, setting: Setting, pair: Pair, replies: Mapping[str, JudgeReply]) -> None:
        self._setting, self._pair, self._replies = setting, pair, replies
        self.results: list[Result] = []
        self.call: JudgeCall | None = None
        self._go_on()

    def hear(self, heard: Heard) -> None:
        """Go on with what the reply to the present call holds."""
        self.results.append(read_preference(self._setting.rubric, heard))
        self._go_on()

    @property
    def joined(self) -> Joined:
        """What both orders come to; of a conversation that has ended."""
        return joined(self.results[0], self.results[-1])

    def _go_on(self) -> None:
        self.call = None
        while len(self.results) < 2 and all(result.value is not None for result in self.results):
            call = self._next()
            reply = self._replies.get(request_hash(call, repeat=REPEAT))
            if reply is None:
                self.call = call
                return
            self.results.append(read_preference(self._setting.rubric, hear(reply, call.ask, call.rung)))

    def _next(self) -> JudgeCall:
        pair, rubric, judge = self._pair, self._setting.rubric, self._setting.judge
        first, second = (pair.text_b, pair.text_a) if self.results else (pair.text_a, pair.text_b)
        ask = pairwise_ask(rubric, pair.question_text, pair.reference, first, second)
        # Preferences are labels, which are taken as said: no log probabilities are asked for.
        return judge_call(
            rubric,
            question_of(pair),
            AnswerSpec(first),
            ask,
            model=judge.model,
            parameters=judge.params,
            rung=self._setting.rung,
        )


def question_of(pair: Pair) -> QuestionSpec:
    """The pair's question as judges see it."""
    references = (pair.reference,) if pair.reference else ()
    return QuestionSpec(id=pair.external_id, category="", text=pair.question_text, references=references)


HEARTBEAT_SHARE = 3  # the lease is prolonged when a third of its time has passed


@dataclass
class Turn:
    """A turn at a comparison. Times are the database's, as those of all leases."""

    judging: PairJudging
    _token: uuid.UUID = field(default_factory=uuid.uuid4)
    _prolonged_at: float = float("-inf")

    def begin(self) -> bool:
        """Take the turn; false while somebody else has it."""
        free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
        return self._lease(Q(pk=self.judging.pk) & free)

    def holds(self) -> bool:
        """Whether the turn is still ours; prolongs it in time."""
        if time.monotonic() - self._prolonged_at < settings.CONCORD_LEASE_SECONDS / HEARTBEAT_SHARE:
            return PairJudging.objects.filter(pk=self.judging.pk, lease_token=self._token).exists()
        return self._lease(Q(pk=self.judging.pk, lease_token=self._token))

    def end(self) -> None:
        """Hand the turn over."""
        PairJudging.objects.filter(pk=self.judging.pk, lease_token=self._token).update(
            lease_token=None, lease_until=None
        )

    def _lease(self, where: Q) -> bool:
        until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)
        taken = PairJudging.objects.filter(where).update(lease_token=self._token, lease_until=until)
        self._prolonged_at = time.monotonic()
        return bool(taken)


@dataclass(slots=True)
class Waiting:
    """A pair that has to be compared in a round. ``made`` counts its calls of the round, ``lost`` those that died with
    their process; it is not to be taken before ``due`` (monotonic seconds)."""

    pair: Pair
    round: int
    made: int = 0
    lost: int = 0
    due: float = float("-inf")


def waiting_in(found: PairSet, judge: JudgeVersion, rubric: RubricVersion) -> list[Waiting]:
    """The pairs that the judge has no value for; one that failed before is in the next round."""
    rows = Preference.objects.filter(pair__pair_set=found, judge_version=judge, rubric_version=rubric)
    valued = set(rows.filter(value__isnull=False).values_list("pair_id", flat=True))
    rounds = dict(rows.order_by("round").values_list("pair_id", "round"))
    left = [pair for pair in found.pairs.order_by("position") if pair.pk not in valued]
    return [Waiting(pair, rounds.get(pair.pk, -1) + 1) for pair in left]


def with_attempts(judging: PairJudging, waiting: Collection[Waiting]) -> dict[int, Waiting]:
    """The pairs by id, with what was tried in their rounds."""
    by_pair = {one.pair.pk: one for one in waiting}
    rows = PairAttempt.objects.filter(judging=judging).order_by().values("pair_id", "round")
    for row in rows.annotate(made=Max("number"), lost=Count("id", filter=Q(reply__isnull=True))):
        one = by_pair.get(row["pair_id"])
        if one is not None and one.round == row["round"]:
            one.made, one.lost = row["made"], row["lost"]
    return by_pair


def preference_row(
    pair: Pair, judge: JudgeVersion, rubric: RubricVersion, number: int, both: Joined, results: Collection[Result]
) -> Preference:
    """A judge's row of the round: what both orders come to, with the orders (A first, then B) that were heard."""
    forward, backward, *_ = [*results, None, None]
    return Preference(
        pair=pair,
        by_judge=True,
        judge_version=judge,
        rubric_version=rubric,
        author=str(judge),
        value=both.value,
        failure=both.failure,
        reason=forward.reason if forward and forward.value is not None else "",
        detail={
            "forward": forward.value if forward else None,
            "backward": backward.value if backward else None,
            "orders_disagree": both.disagree,
        },
        origin=content_hash(["preference", pair.pk, METRIC, judge.pk, rubric.pk]),
        round=number,
    )


class KeptPairReplies(NamedTuple):
    """The replies of one endpoint in one project behind preferences that came out."""

    project_id: int
    endpoint_id: int

    def find(self, digests: Collection[str]) -> dict[str, JudgeReply]:
        """The newest good reply to each of the requests that has one, marked as cached and free. One query."""
        valued = Preference.objects.filter(
            pair=OuterRef("attempt__pair"),
            judge_version=OuterRef("attempt__judging__judge_version"),
            rubric_version=OuterRef("attempt__judging__rubric_version"),
            round=OuterRef("attempt__round"),
            value__isnull=False,
        )
        rows = (
            PairReply.objects.filter(
                Exists(valued),
                request_hash__in=digests,
                outcome=Outcome.OK,
                attempt__judging__pair_set__project_id=self.project_id,
                attempt__judging__judge_version__endpoint_id=self.endpoint_id,
            )
            .exclude(raw="")
            .order_by("id")
        )
        found = rows.values_list("request_hash", "raw", "model_returned", "chances", "cost")
        return {digest: kept_reply(raw, model, chances, cost) for digest, raw, model, chances, cost in found}


CRASH_LOOP = "crash_loop"
INTERRUPTED = "interrupted"


@dataclass(slots=True, kw_only=True)
class PairFlight(Flight):
    """A pair in the judge's hands."""

    waiting: Waiting
    talk: PairTalk

    @property
    def about(self) -> dict[str, int]:
        """The pair."""
        return {"concord.pair.id": self.key}


@dataclass(kw_only=True)
class PairSession(CallSession[PairFlight]):
    """The turn at the pairs of a comparison: ``todo`` holds those that are left, by id. ``reason`` is why a person is
    needed, empty where none is."""

    replies = PairReply
    judging: PairJudging
    turn: Turn
    setting: Setting
    todo: dict[int, Waiting]
    reason: str = ""

    def goes_on(self) -> bool:
        """Whether the turn is still ours and nobody is needed."""
        return not self.reason and self.turn.holds()

    def is_claimable(self) -> bool:
        """Whether a pair is due."""
        return any(one.due <= time.monotonic() for one in self.todo.values())

    def take(self, size: int) -> Sequence[PairFlight] | None:
        """The next pairs that are due. Those whose calls died with their process again and again are asked about
        alone, after all others, and given up in the end."""
        now = time.monotonic()
        due = [one for one in self.todo.values() if one.due <= now]
        chosen = [one for one in due if one.lost < SUSPECT_TRIES][:size]
        if not chosen and not self._hands:
            chosen = due[:1]
        if not chosen:
            return None
        heard = self._heard(chosen)
        talks = [(one, PairTalk(self.setting, one.pair, heard.get(one.pair.pk, {}))) for one in chosen]
        ended = [(one, talk.joined, talk) for one, talk in talks if talk.call is None]
        asking = [(one, talk) for one, talk in talks if talk.call is not None]
        if asking and asking[0][0].lost >= MAX_TRIES:
            ended, asking = [(one, Joined(None, CRASH_LOOP, disagree=False), talk) for one, talk in asking], []
        with transaction.atomic():
            self._store(ended)
            attempts = self._attempts([one for one, _ in asking])
        for one in chosen:
            del self.todo[one.pair.pk]
        self.ended += len(ended)
        return [self._flight(one, talk, attempts[one.pair.pk]) for one, talk in asking]

    def attempt(self, flights: Sequence[PairFlight]) -> Sequence[PairFlight]:
        """The next attempts, as long as the turn is ours."""
        if not self.goes_on():
            return []
        made = self._attempts([flight.waiting for flight in flights])
        for flight in flights:
            flight.attempt_id, flight.number = made[flight.waiting.pair.pk], flight.waiting.made
        return flights

    def end(self, flights: Sequence[PairFlight]) -> None:
        """Write the preferences."""
        self._store((flight.waiting, flight.talk.joined, flight.talk) for flight in flights)

    def give_back(self, flights: Sequence[PairFlight], after_seconds: float = 0.0) -> None:
        """Back to what is to be done. A call that is still out is written down as broken off: its process lived."""
        rows = [PairReply(attempt_id=flight.attempt_id, outcome=INTERRUPTED) for flight in flights]
        PairReply.objects.bulk_create(rows, ignore_conflicts=True)
        for flight in flights:
            flight.waiting.due = time.monotonic() + after_seconds
            self.todo[flight.key] = flight.waiting

    def mark_unsent(self, flights: Sequence[PairFlight]) -> None:
        """A reply to each attempt that says so."""
        rows = [PairReply(attempt_id=flight.attempt_id, outcome=Outcome.NOT_SENT, cost=0) for flight in flights]
        PairReply.objects.bulk_create(rows, ignore_conflicts=True)

    def extend(self, flights: Sequence[PairFlight]) -> None:
        """The lease is the turn's."""

    def stop_for(self, reason: str) -> None:
        """Whoever began the comparison is told."""
        self.reason = reason

    def _store(self, ended: Iterable[tuple[Waiting, Joined, PairTalk]]) -> None:
        """Two processes that ended one pair (a turn lost and not noticed) leave one row."""
        judge, rubric = self.judging.judge_version, self.judging.rubric_version
        rows = [preference_row(one.pair, judge, rubric, one.round, both, talk.results) for one, both, talk in ended]
        Preference.objects.bulk_create(rows, ignore_conflicts=True)

    def _heard(self, chosen: Sequence[Waiting]) -> dict[int, dict[str, JudgeReply]]:
        """Good replies of the present rounds, by pair. No query for pairs that were never asked about."""
        rounds = {one.pair.pk: one.round for one in chosen if one.made}
        found: dict[int, dict[str, JudgeReply]] = {}
        if rounds:
            good = PairReply.objects.filter(
                attempt__judging=self.judging, attempt__pair__in=rounds, outcome__in=[Outcome.OK, Outcome.CACHED]
            )
            columns = ("attempt__pair_id", "attempt__round", "request_hash", "raw", "chances")
            for pair_id, number, digest, raw, chances in good.exclude(raw="").order_by("id").values_list(*columns):
                if number == rounds[pair_id]:
                    found.setdefault(pair_id, {})[digest] = JudgeReply(Outcome.OK, raw=raw, chances=chances)
        return found

    def _attempts(self, ones: Sequence[Waiting]) -> dict[int, int]:
        """The next attempt of each, by pair."""
        for one in ones:
            one.made += 1
        rows = [PairAttempt(judging=self.judging, pair=one.pair, round=one.round, number=one.made) for one in ones]
        return {row.pair_id: row.pk for row in PairAttempt.objects.bulk_create(rows)}

    def _flight(self, one: Waiting, talk: PairTalk, attempt_id: int) -> PairFlight:
        if talk.call is None:
            raise ValueError("the conversation has ended")
        return PairFlight(
            key=one.pair.pk,
            talk=talk,
            attempt_id=attempt_id,
            call=talk.call,
            claimed_at=time.monotonic(),
            suspect=one.lost >= SUSPECT_TRIES,
            number=one.made,
            waiting=one,
        )
