"""What every connector does: it is opened with its settings, is asked one question at a time, and gives a reply, good
or bad. Also the turns of a conversation that came before a question.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from pydantic import Field

from evaluation.core.errors import ConcordError
from evaluation.core.samples import AnswerSpec, FrozenModel, QuestionSpec
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import TransportFault

RECORDED = "recorded"  # instead of a connector: answers come from a file, nothing is asked
FULL_RAG, RETRIEVAL_ONLY = "full_rag", "retrieval_only"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_DETAIL = 300  # characters of a reason's detail


class AskFailed(ConcordError):
    """The system gave no answer; ``code`` is the reason of the failed answer (``evaluation/messages/reasons.py``).

    ``outcome`` is how the call ended, which decides whether it is made again.
    """

    def __init__(self, code: str, *, detail: str = "", outcome: Outcome = Outcome.WRONG_CONTENT) -> None:
        self.code, self.detail, self.outcome = code, detail, outcome
        super().__init__(f"{code}: {detail}" if detail else code)


@dataclass(frozen=True, slots=True)
class SystemCall:
    """One question to a system. ``sample`` tells several answers to one question apart, from 0; ``k`` is how many
    passages are wanted (1 to 50); of ``retrieval_only`` no answer is expected, only what was retrieved."""

    question: QuestionSpec
    k: int = 5
    evaluation_type: str = FULL_RAG
    sample: int = 0

    @property
    def characters(self) -> int:
        """Of what is told the system."""
        return len(self.question.text) + sum(map(len, self.question.history))


@dataclass(frozen=True, slots=True)
class Told:
    """A system's answer as it was mapped. ``confidence`` is the system's own; ``first_token_seconds`` runs from the
    request to the first piece of a streamed answer. Tokens are ``None`` where the system did not say."""

    answer: AnswerSpec
    confidence: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str = ""
    first_token_seconds: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class SystemReply:
    """How asking ended. ``told`` is there where ``outcome`` is ``ok``, else ``reason`` says why not: a code, with a
    detail behind ``": "``. ``request`` describes what was sent without secrets, ``raw`` is the first part of what came
    back; both can be stored as they are. ``retry_after`` is in seconds from the reply, ``ended_at`` in seconds of the
    Unix clock."""

    outcome: Outcome
    told: Told | None = None
    reason: str = ""
    request: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    raw: str = ""
    http_status: int | None = None
    retry_after: float | None = None
    elapsed_seconds: float = 0.0
    ended_at: float = 0.0

    @property
    def tokens_in(self) -> int | None:
        """Of the request, as the system counts them."""
        return self.told.tokens_in if self.told else None

    @property
    def tokens_out(self) -> int | None:
        """Of the answer, as the system counts them."""
        return self.told.tokens_out if self.told else None


class Settings(FrozenModel):
    """What all connectors are told. A connector's own settings add to it."""

    timeout_seconds: float = Field(default=60.0, ge=0.1, le=600.0, description="Seconds from asking to the last byte.")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operator of this installation allows: ``origins`` that may be called, environment ``variables`` that may
    be sent, ``commands`` and ``functions`` by the names under which systems may use them. ``project`` is the id of
    the system's project."""

    origins: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    commands: Mapping[str, Sequence[str]] = field(default_factory=lambda: _NOTHING)
    functions: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    project: int | None = None


class SystemClient(ABC):
    """A system that is open for questions. Use as an asynchronous context manager. ``call`` asks once and never raises
    for a fault of the system; asking again is the caller's, so that every attempt can be written down before."""

    deadline: float = 60.0

    def prepare(self) -> None:  # noqa: B027  -- most have nothing to prepare
        """What takes a while and is needed before the first question, outside any event loop.

        :raises Refused: where it cannot be done.
        """

    @abstractmethod
    async def ask(self, call: SystemCall) -> SystemReply:
        """The reply to one question.

        :raises AskFailed: where there is none.
        :raises TransportFault: likewise.
        """

    @abstractmethod
    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """What is sent for the question, for people; secrets by their names.

        :raises AskFailed: where nothing can be sent.
        """

    async def call(self, request: SystemCall) -> SystemReply:
        """Ask once, within the deadline."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.deadline):
                reply = await self.ask(request)
        except TimeoutError:
            reply = failed(Outcome.TIMEOUT, detail=f"no complete answer in {self.deadline:g} s")
        except TransportFault as fault:
            reply = failed(fault.outcome, detail=str(fault))
        except AskFailed as error:
            reply = failed(error.outcome, error.code, error.detail)
        except RecursionError:
            reply = failed(Outcome.WRONG_CONTENT, detail="the reply is nested too deeply")
        except OSError as error:  # of this machine, such as no memory for a process
            reply = failed(Outcome.CONNECTION, detail=type(error).__name__)
        elapsed = time.monotonic() - started
        return replace(_timed(reply, elapsed), elapsed_seconds=elapsed, ended_at=time.time())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


def _timed(reply: SystemReply, elapsed: float) -> SystemReply:
    """With the time it took as the answer's, where the system told none."""
    told = reply.told
    if told is None or told.answer.latency_seconds is not None:
        return reply
    return replace(reply, told=replace(told, answer=replace(told.answer, latency_seconds=elapsed)))


def failed(outcome: Outcome, code: str = "", detail: str = "", **fields: Any) -> SystemReply:
    """A reply without an answer; its reason is the outcome's where no ``code`` is given."""
    reason = code or str(outcome)
    return SystemReply(outcome, reason=f"{reason}: {detail[:_DETAIL]}" if detail else reason, **fields)


@dataclass(frozen=True, slots=True)
class Connector:
    """One kind of system: its name, its settings, and ``open``, which makes a client of them, to be used as an
    asynchronous context manager, or raises ``Refused`` where the operator does not allow what they ask for."""

    name: str
    settings: type[Settings]
    open: Callable[[Any, Surroundings], SystemClient]


_ROLES = ("user", "assistant", "system")


def turns(history: Sequence[str]) -> list[dict[str, str]]:
    """Earlier turns as chat messages: by the role that a turn names (``user: …``), else in turns, the user first."""
    found = []
    for place, turn in enumerate(history):
        role, colon, content = turn.partition(": ")
        named = bool(colon) and role.lower() in _ROLES
        found.append(
            {"role": role.lower(), "content": content} if named else {"role": _ROLES[place % 2], "content": turn}
        )
    return found
