"""A conversation with a judge in a worker's hands: which attempt is out, and what becomes of it after a reply."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from evaluation.judging.asking import Heard
from evaluation.judging.calls import JudgeCall, JudgeReply, Outcome
from evaluation.judging.prompt import repaired
from evaluation.judging.retrying import Defer, GiveUp, NeedsPerson, Retry, decide
from evaluation.work.tracing import Spans


class Talking(Protocol):
    """Calls in their order: ``call`` is the one to make, ``None`` at the end."""

    call: JudgeCall | None

    def hear(self, heard: Heard) -> None: ...


@dataclass(slots=True, kw_only=True)
class Flight:
    """A conversation, the attempt that is out for it, and how earlier tries of the same request ended. ``key`` tells it
    from the others in the same hands; a ``suspect`` may be what killed workers before and is sent alone."""

    key: int
    talk: Talking
    attempt_id: int
    call: JudgeCall
    claimed_at: float  # monotonic seconds; of the last heartbeat later
    repeat: int = 1
    suspect: bool = False
    number: int = 1
    earlier: tuple[Outcome, ...] = ()
    digest: str = ""  # of the call when it was submitted

    @property
    def about(self) -> dict[str, int]:
        """The ids by which spans tell what the conversation is about."""
        return {}


F = TypeVar("F", bound=Flight)


@dataclass(slots=True)
class Sorted(Generic[F]):
    """What becomes of the flights whose replies came back."""

    finished: list[F] = field(default_factory=list)
    go_on: list[F] = field(default_factory=list)  # with their next call, at once
    again: list[tuple[float, F]] = field(default_factory=list)  # the same after so many seconds
    deferred: list[tuple[float, F]] = field(default_factory=list)  # given back, due after so many seconds
    needs_person: str = ""  # why no call can succeed before somebody acts
    stopped: list[F] = field(default_factory=list)  # by that


def trace(flight: Flight, reply: JudgeReply, outcome: Outcome, into: Spans) -> None:
    """Tell of the call that came back."""
    about: dict[str, str | int | None] = {
        **flight.about,
        "concord.attempt": flight.number,
        "gen_ai.request.model": flight.call.model,
        "gen_ai.response.model": reply.model_returned or None,
        "gen_ai.usage.input_tokens": reply.tokens_in,
        "gen_ai.usage.output_tokens": reply.tokens_out,
        "http.response.status_code": reply.http_status,
    }
    into.call(about, str(outcome), reply.ended_at, reply.elapsed_seconds)


def sort_reply(into: Sorted[F], flight: F, reply: JudgeReply, heard: Heard, rng: random.Random) -> None:
    """Decide what follows a reply, in which ``heard`` was heard."""
    outcome, tries = heard.outcome, len(flight.earlier) + 1
    decision = decide(outcome, tries, reply.retry_after, rng, earlier=flight.earlier)
    if outcome is Outcome.OK or isinstance(decision, GiveUp):
        flight.talk.hear(heard)
        if flight.talk.call is None:
            into.finished.append(flight)
        else:
            flight.call, flight.earlier = flight.talk.call, ()
            into.go_on.append(flight)
        return
    flight.earlier = (*flight.earlier, outcome)
    match decision:
        case NeedsPerson(reason):
            into.needs_person = reason
            into.stopped.append(flight)
        case Defer(seconds):
            into.deferred.append((seconds, flight))
        case Retry(seconds):
            if outcome in {Outcome.PARSE, Outcome.TRUNCATED}:
                flight.call = repaired(flight.call, outcome)
            into.again.append((seconds, flight))
