"""Description of a judge provider, and the part of a client that every provider behind a server shares."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NotRequired, Self, TypedDict, Unpack

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import VERDICT, JudgeCall, JudgeClient, JudgeReply, Rung
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault

LAST_LINE = f"End your reply with one line of its own: {VERDICT} followed by the JSON object, all on that line."
_OK = 200
_SHORTEST_KEY = 8


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of judge.

    ``name`` is stored with endpoints, ``title`` is shown. ``open`` makes a client from a :class:`Connection` and the
    endpoint's columns that ``settings`` names; a provider that is not ``remote`` has no endpoint and gets nothing.
    ``rungs`` are the ways of asking for structured output that the preflight tries, best first; the last needs no
    support of the server. ``logprobs``: replies may tell log probabilities, which calls ask for by the parameters
    ``logprobs`` and ``top_logprobs``. ``batches`` and ``embeddings``: the server offers them in OpenAI's format.
    """

    name: str
    title: Bilingual
    open: Callable[..., JudgeClient]
    remote: bool = True
    settings: tuple[str, ...] = ()
    rungs: tuple[Rung, ...] = tuple(Rung)
    logprobs: bool = False
    batches: bool = False
    embeddings: bool = False

    @property
    def options(self) -> frozenset[str]:
        """Optional columns of an endpoint that this provider takes."""
        offered = {"batches": self.batches, "embedding_model": self.embeddings}
        return frozenset(self.settings) | {name for name, takes in offered.items() if takes}


class Connection(TypedDict):
    """Address and key of a server, and the operator's limits."""

    base_url: str
    key: NotRequired[str]
    allowed_origins: Iterable[str]
    deadlines: NotRequired[Deadlines]


class EndpointJudge(ABC):
    """A judge behind a server: one call is one HTTP request, and every fault is a reply. Use as ``async with``.

    A provider says where a request goes (``path``), what is in it (``body``) and how a response is read (``read``).

    :raises Refused: ``origin_invalid``, ``origin_not_allowed`` when the base URL may not be called.
    """

    most_bytes = 4_000_000  # of a response body

    def __init__(self, *, azure: str = "", **connection: Unpack[Connection]) -> None:
        self._base_url, self._key = connection["base_url"], connection.get("key", "")
        self._transport = GuardedTransport(
            self._base_url,
            **self.credentials(self._key),
            allowed_origins=connection["allowed_origins"],
            deadlines=connection.get("deadlines"),
            most_bytes=self.most_bytes,
            azure=azure,
        )

    @staticmethod
    def credentials(key: str) -> dict[str, Any]:
        """Options of the transport that send the key: as the bearer token, unless a provider has ``headers`` for it."""
        return {"key": key}

    @abstractmethod
    def path(self, request: JudgeCall) -> str:
        """Path of the request under the base URL."""

    @abstractmethod
    def body(self, request: JudgeCall) -> bytes:
        """JSON body of the request. The judge's own parameters cannot replace model or messages."""

    @abstractmethod
    def read(self, response: HttpResponse) -> JudgeReply:
        """Reply for a response of any status; errors map to the outcome that decides whether to try again."""

    async def call(self, request: JudgeCall) -> JudgeReply:
        """Send one request, within the total deadline. Cancelling it closes its connection."""
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
        waiting = retry_after_seconds(response.headers, datetime.now(UTC))
        return replace(reply, raw=self._without_key(reply.raw), retry_after=waiting)

    def _without_key(self, text: str) -> str:
        """The text of a failed call, which people are shown, without the key that some servers repeat in it."""
        return text.replace(self._key, "…") if len(self._key) >= _SHORTEST_KEY else text

    async def __aenter__(self) -> Self:
        self._llm = self._transport.llm(self._base_url)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._transport.aclose()


def messages_of(request: JudgeCall) -> list[dict[str, str]]:
    """Chat messages of the request, with the schema at the end where the server is not sent it as such."""
    messages = [dict(message) for message in request.rendered.messages]
    if request.rung in {Rung.JSON_OBJECT, Rung.TEXT}:
        last_line = f"\n\n{LAST_LINE}" if request.rung is Rung.TEXT else ""
        schema = json.dumps(dict(request.rendered.schema), ensure_ascii=False)
        messages[-1]["content"] += f"{last_line}\n\nJSON schema: {schema}"
    return messages


def member(value: Any, name: str) -> Any:
    """Member of a JSON object; ``None`` for anything else."""
    return value.get(name) if isinstance(value, Mapping) else None
