"""Connector interface: open with settings, ask one question per call, return a reply; and turns before a question."""

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

# In place of a connector: the answers come from a file.
RECORDED = "recorded"
FULL_RAG, RETRIEVAL_ONLY = "full_rag", "retrieval_only"
_EMPTY: Mapping[str, Any] = MappingProxyType({})
# Characters of a reason's detail.
_MAX_DETAIL = 300


class AskFailed(ConcordError):
    """The system gave no answer. ``code`` is the reason of the failed answer (``evaluation/messages/reasons.py``).

    ``outcome`` decides whether the call is retried."""

    def __init__(self, code: str, *, detail: str = "", outcome: Outcome = Outcome.WRONG_CONTENT) -> None:
        self.code, self.detail, self.outcome = code, detail, outcome
        super().__init__(f"{code}: {detail}" if detail else code)


@dataclass(frozen=True, slots=True)
class SystemCall:
    """One question to a system. ``sample`` numbers several answers to one question, from 0. ``k`` is the number of
    requested passages (1 to 50). ``retrieval_only`` expects passages without an answer."""

    question: QuestionSpec
    k: int = 5
    evaluation_type: str = FULL_RAG
    sample: int = 0

    @property
    def characters(self) -> int:
        """Length of question and history."""
        return len(self.question.text) + sum(map(len, self.question.history))


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """Mapped answer of a system. ``confidence`` is the system's own. ``first_token_seconds`` is measured from the
    request to the first piece of a stream. Tokens are ``None`` if not reported."""

    answer: AnswerSpec
    confidence: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str = ""
    first_token_seconds: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class SystemReply:
    """Result of a call. ``content`` is set if ``outcome`` is ``ok``, else ``reason`` holds a code, with a detail after
    ``": "``.

    ``request`` describes the request without secrets, ``raw`` is the start of the response; both are storable.
    ``retry_after`` is in seconds after the reply, ``ended_at`` in Unix seconds."""

    outcome: Outcome
    content: SystemAnswer | None = None
    reason: str = ""
    request: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    raw: str = ""
    http_status: int | None = None
    retry_after: float | None = None
    elapsed_seconds: float = 0.0
    ended_at: float = 0.0

    @property
    def tokens_in(self) -> int | None:
        """Prompt tokens as the system reports them."""
        return self.content.tokens_in if self.content else None

    @property
    def tokens_out(self) -> int | None:
        """Answer tokens as the system reports them."""
        return self.content.tokens_out if self.content else None


class Settings(FrozenModel):
    """Settings shared by all connectors."""

    timeout_seconds: float = Field(
        default=60.0, ge=0.1, le=600.0, description="Seconds from sending the question to the last byte."
    )


@dataclass(frozen=True, slots=True)
class OperatorPolicy:
    """The operator's permissions: callable ``origins``, environment ``variables`` that may be sent, and ``commands``
    and ``functions`` by name. ``project`` is the id of the system's project."""

    origins: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    commands: Mapping[str, Sequence[str]] = field(default_factory=lambda: _EMPTY)
    functions: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    project: int | None = None


class SystemClient(ABC):
    """Open system; an asynchronous context manager. ``call`` asks once and never raises for faults of the system.
    Retries are the caller's task, so that every attempt is recorded first."""

    deadline: float = 60.0

    def prepare(self) -> None:  # noqa: B027  -- most have nothing to prepare
        """Slow preparation before the first question, outside any event loop.

        :raises DomainError: if it fails."""

    @abstractmethod
    async def ask(self, call: SystemCall) -> SystemReply:
        """Reply to one question.

        :raises AskFailed: if there is none.
        :raises TransportFault: if the connection fails."""

    @abstractmethod
    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """Description of the request for people, with secrets by name only.

        :raises AskFailed: if nothing can be sent."""

    async def call(self, request: SystemCall) -> SystemReply:
        """Ask once, within the deadline."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.deadline):
                reply = await self.ask(request)
        except TimeoutError:
            reply = failed_reply(Outcome.TIMEOUT, detail=f"no complete answer in {self.deadline:g} s")
        except TransportFault as fault:
            reply = failed_reply(fault.outcome, detail=str(fault))
        except AskFailed as error:
            reply = failed_reply(error.outcome, error.code, error.detail)
        except RecursionError:
            reply = failed_reply(Outcome.WRONG_CONTENT, detail="the reply is nested too deeply")
        # Local failures, such as too little memory for a process.
        except OSError as error:
            reply = failed_reply(Outcome.CONNECTION, detail=type(error).__name__)
        elapsed = time.monotonic() - started
        return replace(_with_latency(reply, elapsed), elapsed_seconds=elapsed, ended_at=time.time())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


def _with_latency(reply: SystemReply, elapsed: float) -> SystemReply:
    """Set the elapsed time as latency if the system reported none."""
    content = reply.content
    if content is None or content.answer.latency_seconds is not None:
        return reply
    return replace(reply, content=replace(content, answer=replace(content.answer, latency_seconds=elapsed)))


def failed_reply(outcome: Outcome, code: str = "", detail: str = "", **fields: Any) -> SystemReply:
    """Reply without an answer. Its reason is the outcome if no ``code`` is given."""
    reason = code or str(outcome)
    return SystemReply(outcome, reason=f"{reason}: {detail[:_MAX_DETAIL]}" if detail else reason, **fields)


@dataclass(frozen=True, slots=True)
class Connector:
    """Kind of system: name, settings class, and ``open``, which builds a client or raises ``DomainError`` if the
    operator
    does not allow the settings."""

    name: str
    settings: type[Settings]
    open: Callable[[Any, OperatorPolicy], SystemClient]


_ROLES = ("user", "assistant", "system")


def chat_turns(history: Sequence[str]) -> list[dict[str, str]]:
    """Earlier turns as chat messages, by the role that a turn names (``user: …``), else alternating from the user."""
    messages = []
    for index, turn in enumerate(history):
        role, colon, content = turn.partition(": ")
        has_role = bool(colon) and role.lower() in _ROLES
        messages.append(
            {"role": role.lower(), "content": content} if has_role else {"role": _ROLES[index % 2], "content": turn}
        )
    return messages
