"""A judge's calls about pairs, recorded in the pairs' own ledger, by one process at a time.

A conversation compares one pair, A first, then B first; a failed order ends it. Pending work follows from the rows
alone: pairs without a preference in the current round are asked about, and answered calls of the round are not
repeated."""

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
from contrib.pairs.pairwise import METRIC, JoinedPreference, join_orders, pairwise_request, read_preference
from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import JudgeCall, JudgeReply, ParsedReply, ResponseFormat
from evaluation.judging.prompt import judge_call, parse_reply, request_hash
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, RubricVersion
from evaluation.network.outcomes import Outcome
from evaluation.scoring.replies import JudgeConversationCall, cached_reply
from evaluation.scoring.sessions import CallSession
from evaluation.worker.units import MAX_TRIES, SUSPECT_TRIES

# Each order is asked once.
REPEAT = 1


class ConversationSetup(NamedTuple):
    """Common settings of all conversations of a comparison."""

    judge: JudgeVersion
    rubric: Rubric
    response_format: ResponseFormat


class PairConversation:
    """A conversation about one pair. ``call`` is the next call, ``None`` at the end; ``results`` are those of the
    orders so far. Calls with a reply in the ledger are answered at once."""

    def __init__(self, setup: ConversationSetup, pair: Pair, replies: Mapping[str, JudgeReply]) -> None:
        self._setup, self._pair, self._replies = setup, pair, replies
        self.results: list[Result] = []
        self.call: JudgeCall | None = None
        self._advance()

    def receive(self, parsed: ParsedReply) -> None:
        """Continue with the reply to the current call."""
        self.results.append(read_preference(self._setup.rubric, parsed))
        self._advance()

    @property
    def joined_preference(self) -> JoinedPreference:
        """Joined preference of both orders, once the conversation has ended."""
        return join_orders(self.results[0], self.results[-1])

    def _advance(self) -> None:
        self.call = None
        while len(self.results) < 2 and all(result.value is not None for result in self.results):
            call = self._next_call()
            reply = self._replies.get(request_hash(call, repeat=REPEAT))
            if reply is None:
                self.call = call
                return
            self.results.append(
                read_preference(self._setup.rubric, parse_reply(reply, call.judge_request, call.response_format))
            )

    def _next_call(self) -> JudgeCall:
        pair, rubric, judge = self._pair, self._setup.rubric, self._setup.judge
        first, second = (pair.text_b, pair.text_a) if self.results else (pair.text_a, pair.text_b)
        ask = pairwise_request(rubric, pair.question_text, pair.reference, first, second)
        # Preferences are labels and need no log probabilities.
        return judge_call(
            rubric,
            question_of(pair),
            AnswerSpec(first),
            ask,
            model=judge.model,
            parameters=judge.params,
            response_format=self._setup.response_format,
        )


def question_of(pair: Pair) -> QuestionSpec:
    """The pair's question for judges."""
    references = (pair.reference,) if pair.reference else ()
    return QuestionSpec(id=pair.external_id, category="", text=pair.question_text, references=references)


# The lease is extended when a third of its time has passed.
HEARTBEAT_SHARE = 3


@dataclass
class JudgingLease:
    """The lease of a comparison, by the database's clock."""

    judging: PairJudging
    _token: uuid.UUID = field(default_factory=uuid.uuid4)
    _prolonged_at: float = float("-inf")

    def acquire(self) -> bool:
        """Acquire the lease; false while another process holds it."""
        is_free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
        return self._update_lease(Q(pk=self.judging.pk) & is_free)

    def keep_alive(self) -> bool:
        """Return whether the lease is still held; extends it in time."""
        if time.monotonic() - self._prolonged_at < settings.CONCORD_LEASE_SECONDS / HEARTBEAT_SHARE:
            return PairJudging.objects.filter(pk=self.judging.pk, lease_token=self._token).exists()
        return self._update_lease(Q(pk=self.judging.pk, lease_token=self._token))

    def release(self) -> None:
        PairJudging.objects.filter(pk=self.judging.pk, lease_token=self._token).update(
            lease_token=None, lease_until=None
        )

    def _update_lease(self, condition: Q) -> bool:
        until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)
        updated_count = PairJudging.objects.filter(condition).update(lease_token=self._token, lease_until=until)
        self._prolonged_at = time.monotonic()
        return bool(updated_count)


@dataclass(slots=True)
class PendingPair:
    """A pair to compare in a round. ``attempt_count`` counts its calls in the round, ``lost_count`` those that died
    with their process. It is not taken before ``due_at`` (monotonic seconds)."""

    pair: Pair
    round: int
    attempt_count: int = 0
    lost_count: int = 0
    due_at: float = float("-inf")


def find_pending_pairs(pair_set: PairSet, judge: JudgeVersion, rubric: RubricVersion) -> list[PendingPair]:
    """Pairs without a value by the judge; a pair that failed before is in the next round."""
    rows = Preference.objects.filter(pair__pair_set=pair_set, judge_version=judge, rubric_version=rubric)
    rated_ids = set(rows.filter(value__isnull=False).values_list("pair_id", flat=True))
    rounds = dict(rows.order_by("round").values_list("pair_id", "round"))
    unrated_pairs = [pair for pair in pair_set.pairs.order_by("position") if pair.pk not in rated_ids]
    return [PendingPair(pair, rounds.get(pair.pk, -1) + 1) for pair in unrated_pairs]


def count_attempts(judging: PairJudging, pending_pairs: Collection[PendingPair]) -> dict[int, PendingPair]:
    """Fill in the attempts of the pairs' rounds; returns the pairs by id."""
    by_pair = {pending_pair.pair.pk: pending_pair for pending_pair in pending_pairs}
    rows = PairAttempt.objects.filter(judging=judging).order_by().values("pair_id", "round")
    for row in rows.annotate(attempt_count=Max("number"), lost_count=Count("id", filter=Q(reply__isnull=True))):
        pending_pair = by_pair.get(row["pair_id"])
        if pending_pair is not None and pending_pair.round == row["round"]:
            pending_pair.attempt_count, pending_pair.lost_count = row["attempt_count"], row["lost_count"]
    return by_pair


def preference_row(
    pair: Pair,
    judge: JudgeVersion,
    rubric: RubricVersion,
    round_number: int,
    joined_preference: JoinedPreference,
    results: Collection[Result],
) -> Preference:
    """Build a judge's preference of a round from both orders (A first, then B)."""
    forward, backward, *_ = [*results, None, None]
    return Preference(
        pair=pair,
        by_judge=True,
        judge_version=judge,
        rubric_version=rubric,
        author=str(judge),
        value=joined_preference.value,
        failure=joined_preference.failure,
        reason=forward.reason if forward and forward.value is not None else "",
        detail={
            "forward": forward.value if forward else None,
            "backward": backward.value if backward else None,
            "orders_disagree": joined_preference.disagree,
        },
        origin=content_hash(["preference", pair.pk, METRIC, judge.pk, rubric.pk]),
        round=round_number,
    )


class CachedPairReplies(NamedTuple):
    """Reply cache of one endpoint in one project: replies behind preferences with a value."""

    project_id: int
    endpoint_id: int

    def find(self, digests: Collection[str]) -> dict[str, JudgeReply]:
        """Newest usable reply to each of the requests that has one, marked as cached and free. One query."""
        rated_preferences = Preference.objects.filter(
            pair=OuterRef("attempt__pair"),
            judge_version=OuterRef("attempt__judging__judge_version"),
            rubric_version=OuterRef("attempt__judging__rubric_version"),
            round=OuterRef("attempt__round"),
            value__isnull=False,
        )
        rows = (
            PairReply.objects.filter(
                Exists(rated_preferences),
                request_hash__in=digests,
                outcome=Outcome.OK,
                attempt__judging__pair_set__project_id=self.project_id,
                attempt__judging__judge_version__endpoint_id=self.endpoint_id,
            )
            .exclude(raw="")
            .order_by("id")
        )
        columns = rows.values_list("request_hash", "raw", "model_returned", "chances", "cost")
        return {digest: cached_reply(raw, model, chances, cost) for digest, raw, model, chances, cost in columns}


CRASH_LOOP = "crash_loop"
INTERRUPTED = "interrupted"


@dataclass(slots=True, kw_only=True)
class PairFlight(JudgeConversationCall):
    """A pair whose call is in flight."""

    pending_pair: PendingPair
    conversation: PairConversation

    @property
    def trace_ids(self) -> dict[str, int]:
        return {"concord.pair.id": self.key}


@dataclass(kw_only=True)
class PairSession(CallSession[PairFlight]):
    """Call loop over the pairs of a comparison: ``todo`` holds the pending ones by id. ``reason`` says why a person is
    needed and is empty otherwise."""

    replies = PairReply
    judging: PairJudging
    lease: JudgingLease
    setup: ConversationSetup
    todo: dict[int, PendingPair]
    reason: str = ""

    def may_continue(self) -> bool:
        """Return whether the lease is held and no person is needed."""
        return not self.reason and self.lease.keep_alive()

    def is_claimable(self) -> bool:
        return any(pending_pair.due_at <= time.monotonic() for pending_pair in self.todo.values())

    def take(self, size: int) -> Sequence[PairFlight] | None:
        """Take the next due pairs. Pairs whose calls repeatedly died with their process are taken alone, after all
        others, and finally given up."""
        now = time.monotonic()
        due_pairs = [pending_pair for pending_pair in self.todo.values() if pending_pair.due_at <= now]
        chosen_pairs = [pending_pair for pending_pair in due_pairs if pending_pair.lost_count < SUSPECT_TRIES][:size]
        if not chosen_pairs and not self._flights:
            chosen_pairs = due_pairs[:1]
        if not chosen_pairs:
            return None
        replies_by_pair = self._earlier_replies(chosen_pairs)
        conversations = [
            (
                pending_pair,
                PairConversation(self.setup, pending_pair.pair, replies_by_pair.get(pending_pair.pair.pk, {})),
            )
            for pending_pair in chosen_pairs
        ]
        ended_conversations = [
            (pending_pair, conversation.joined_preference, conversation)
            for pending_pair, conversation in conversations
            if conversation.call is None
        ]
        open_conversations = [
            (pending_pair, conversation)
            for pending_pair, conversation in conversations
            if conversation.call is not None
        ]
        if open_conversations and open_conversations[0][0].lost_count >= MAX_TRIES:
            ended_conversations, open_conversations = (
                [
                    (pending_pair, JoinedPreference(None, CRASH_LOOP, disagree=False), conversation)
                    for pending_pair, conversation in open_conversations
                ],
                [],
            )
        with transaction.atomic():
            self._store_preferences(ended_conversations)
            attempts = self._create_attempts([pending_pair for pending_pair, _ in open_conversations])
        for pending_pair in chosen_pairs:
            del self.todo[pending_pair.pair.pk]
        self.ended_conversations += len(ended_conversations)
        return [
            self._make_flight(pending_pair, conversation, attempts[pending_pair.pair.pk])
            for pending_pair, conversation in open_conversations
        ]

    def attempt(self, flights: Sequence[PairFlight]) -> Sequence[PairFlight]:
        """Record the next attempts, as long as the lease is held."""
        if not self.may_continue():
            return []
        attempt_ids = self._create_attempts([flight.pending_pair for flight in flights])
        for flight in flights:
            flight.attempt_id, flight.number = (
                attempt_ids[flight.pending_pair.pair.pk],
                flight.pending_pair.attempt_count,
            )
        return flights

    def end(self, flights: Sequence[PairFlight]) -> None:
        self._store_preferences(
            (flight.pending_pair, flight.conversation.joined_preference, flight.conversation) for flight in flights
        )

    def give_back(self, flights: Sequence[PairFlight], after_seconds: float = 0.0) -> None:
        """Return the pairs to the pending ones. A call in flight is recorded as interrupted, because its process did
        not die."""
        rows = [PairReply(attempt_id=flight.attempt_id, outcome=INTERRUPTED) for flight in flights]
        PairReply.objects.bulk_create(rows, ignore_conflicts=True)
        for flight in flights:
            flight.pending_pair.due_at = time.monotonic() + after_seconds
            self.todo[flight.key] = flight.pending_pair

    def mark_unsent(self, flights: Sequence[PairFlight]) -> None:
        """Record that the attempts were not sent."""
        rows = [PairReply(attempt_id=flight.attempt_id, outcome=Outcome.NOT_SENT, cost=0) for flight in flights]
        PairReply.objects.bulk_create(rows, ignore_conflicts=True)

    def extend(self, flights: Sequence[PairFlight]) -> None:
        """Do nothing: the comparison's lease covers all pairs."""

    def stop_for(self, reason: str) -> None:
        """Stop, and report the reason to the caller."""
        self.reason = reason

    def _store_preferences(
        self, ended_conversations: Iterable[tuple[PendingPair, JoinedPreference, PairConversation]]
    ) -> None:
        """Store preferences. If two processes ended one pair after an unnoticed loss of the lease, one row remains."""
        judge, rubric = self.judging.judge_version, self.judging.rubric_version
        rows = [
            preference_row(
                pending_pair.pair, judge, rubric, pending_pair.round, joined_preference, conversation.results
            )
            for pending_pair, joined_preference, conversation in ended_conversations
        ]
        Preference.objects.bulk_create(rows, ignore_conflicts=True)

    def _earlier_replies(self, pending_pairs: Sequence[PendingPair]) -> dict[int, dict[str, JudgeReply]]:
        """Usable replies of the current rounds, by pair. No query for pairs without attempts."""
        rounds = {
            pending_pair.pair.pk: pending_pair.round for pending_pair in pending_pairs if pending_pair.attempt_count
        }
        replies_by_pair: dict[int, dict[str, JudgeReply]] = {}
        if rounds:
            usable_replies = PairReply.objects.filter(
                attempt__judging=self.judging, attempt__pair__in=rounds, outcome__in=[Outcome.OK, Outcome.CACHED]
            )
            columns = ("attempt__pair_id", "attempt__round", "request_hash", "raw", "chances")
            for pair_id, round_number, digest, raw, chances in (
                usable_replies.exclude(raw="").order_by("id").values_list(*columns)
            ):
                if round_number == rounds[pair_id]:
                    replies_by_pair.setdefault(pair_id, {})[digest] = JudgeReply(Outcome.OK, raw=raw, chances=chances)
        return replies_by_pair

    def _create_attempts(self, pending_pairs: Sequence[PendingPair]) -> dict[int, int]:
        """Create the next attempt of each pair; returns their keys by pair."""
        for pending_pair in pending_pairs:
            pending_pair.attempt_count += 1
        rows = [
            PairAttempt(
                judging=self.judging,
                pair=pending_pair.pair,
                round=pending_pair.round,
                number=pending_pair.attempt_count,
            )
            for pending_pair in pending_pairs
        ]
        return {row.pair_id: row.pk for row in PairAttempt.objects.bulk_create(rows)}

    def _make_flight(self, pending_pair: PendingPair, conversation: PairConversation, attempt_id: int) -> PairFlight:
        if conversation.call is None:
            raise ValueError("the conversation has ended")
        return PairFlight(
            key=pending_pair.pair.pk,
            conversation=conversation,
            attempt_id=attempt_id,
            call=conversation.call,
            claimed_at=time.monotonic(),
            suspect=pending_pair.lost_count >= SUSPECT_TRIES,
            number=pending_pair.attempt_count,
            pending_pair=pending_pair,
        )
