"""Provider description, and the client base class of all providers with a server."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NotRequired, Self, TypedDict, Unpack

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import VERDICT, JudgeCall, JudgeClient, JudgeReply, ResponseFormat
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault

LAST_LINE = f"End your reply with one line of its own: {VERDICT} followed by the JSON object, all on that line."
_OK = 200
_MIN_KEY_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of judge.

    ``name`` is stored with endpoints, ``title`` is displayed. ``open`` builds a client from a :class:`Connection` and
    the endpoint columns named in ``settings``. A provider that is not ``remote`` has no endpoint and gets no arguments.
    ``response_formats`` are the formats that the preflight tries, best first; the last needs no server support.
    ``logprobs``: replies can contain log probabilities, requested by ``logprobs`` and ``top_logprobs``. ``batches`` and
    ``embeddings``: the server offers these in OpenAI's format."""

    name: str
    title: Bilingual
    open: Callable[..., JudgeClient]
    remote: bool = True
    settings: tuple[str, ...] = ()
    response_formats: tuple[ResponseFormat, ...] = tuple(ResponseFormat)
    logprobs: bool = False
    batches: bool = False
    embeddings: bool = False

    @property
    def options(self) -> frozenset[str]:
        """Optional endpoint columns that this provider uses."""
        offered = {"batches": self.batches, "embedding_model": self.embeddings}
        return frozenset(self.settings) | {name for name, supported in offered.items() if supported}


class Connection(TypedDict):
    """Address, key and operator limits of a server."""

    base_url: str
    key: NotRequired[str]
    allowed_origins: Iterable[str]
    deadlines: NotRequired[Deadlines]


class EndpointJudge(ABC):
    """Judge behind a server: one call is one HTTP request, and every fault becomes a reply. Use with ``async with``.

    Subclasses implement ``path``, ``body`` and ``read``.

    :raises DomainError: ``origin_invalid``, ``origin_not_allowed`` if the base URL may not be called."""

    # Maximum size of a response body.
    most_bytes = 4_000_000

    def __init__(self, *, azure: str = "", **connection: Unpack[Connection]) -> None:
        self._base_url, self._key = connection["base_url"], connection.get("key", "")
        self._transport = GuardedTransport(
            self._base_url,
            **self.credentials(self._key),
            allowed_origins=connection["allowed_origins"],
            deadlines=connection.get("deadlines"),
            max_bytes=self.most_bytes,
            azure=azure,
        )

    @staticmethod
    def credentials(key: str) -> dict[str, Any]:
        """Transport options that send the key: a bearer token by default. Override to use other headers."""
        return {"key": key}

    @abstractmethod
    def path(self, request: JudgeCall) -> str:
        """Request path below the base URL."""

    @abstractmethod
    def body(self, request: JudgeCall) -> bytes:
        """JSON request body. Judge parameters cannot override model or messages."""

    @abstractmethod
    def read(self, response: HttpResponse) -> JudgeReply:
        """Convert a response of any status to a reply. The outcome decides whether the call is retried."""

    async def call(self, request: JudgeCall) -> JudgeReply:
        """Send one request within the total deadline. Cancelling closes the connection."""
        started = time.monotonic()
        reply = await self._send(request)
        return replace(reply, elapsed_seconds=time.monotonic() - started, ended_at=time.time())

    async def _send(self, request: JudgeCall) -> JudgeReply:
        try:
            response = await self._llm.post(self.path(request), self.body(request), request.model)
        except TransportFault as fault:
            return JudgeReply(fault.outcome, detail=str(fault)[:200])
        reply = self.read(response)
        if reply.outcome in {Outcome.OK, Outcome.PARSE} and response.status == _OK:
            return reply
        retry_after = retry_after_seconds(response.headers, datetime.now(UTC))
        return replace(reply, raw=self._without_key(reply.raw), retry_after=retry_after)

    def _without_key(self, text: str) -> str:
        """Remove the key from the text of a failed call, because some servers echo it and people read the text."""
        return text.replace(self._key, "…") if len(self._key) >= _MIN_KEY_CHARACTERS else text

    async def __aenter__(self) -> Self:
        self._llm = self._transport.llm(self._base_url)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._transport.aclose()


def chat_messages(request: JudgeCall) -> list[dict[str, str]]:
    """Chat messages of the request. The schema is appended for formats in which the server does not receive it
    separately."""
    messages = [dict(message) for message in request.rendered.messages]
    if request.response_format in {ResponseFormat.JSON_OBJECT, ResponseFormat.TEXT}:
        last_line = f"\n\n{LAST_LINE}" if request.response_format is ResponseFormat.TEXT else ""
        schema = json.dumps(dict(request.rendered.schema), ensure_ascii=False)
        messages[-1]["content"] += f"{last_line}\n\nJSON schema: {schema}"
    return messages


def member(value: Any, name: str) -> Any:
    """Member of a JSON object; ``None`` if ``value`` is not an object."""
    return value.get(name) if isinstance(value, Mapping) else None
