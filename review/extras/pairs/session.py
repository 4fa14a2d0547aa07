"""A judge's turn at pairs: the same calls as for scores, written down in the pairs' own ledger.

What is left to do follows from the rows alone: a pair without a preference of the present round is asked about, calls
of the round that were answered are not made again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction

from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.scoring.flights import Flight
from evaluation.scoring.sessions import CallSession
from evaluation.work.units import MAX_TRIES, SUSPECT_TRIES
from review.extras.pairs.pairwise import Joined
from review.extras.pairs.standing import Waiting, preference_row
from review.extras.pairs.talk import PairTalk, Setting
from review.extras.pairs.turns import Turn
from review.models import PairAttempt, PairJudging, PairReply, Preference

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
            for pair_id, number, digest, raw, chances in good.order_by("id").values_list(*columns):
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
