"""Provider description, and the client base class of all providers with a server."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NotRequired, Self, TypedDict, Unpack

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import VERDICT, JudgeCall, JudgeClient, JudgeReply, ResponseFormat
from evaluation.network.completions import (
    Usage,
    classify_finish_reason,
    finish_outcome,
    has_duplicate_keys,
    read_usage,
)
from evaluation.network.outcomes import (
    MAX_TOKENS,
    Outcome,
    excerpt,
    read_count,
    replace_unstorable,
    without_secrets,
)
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault

LAST_LINE = f"End your reply with one line of its own: {VERDICT} followed by the JSON object, all on that line."
_OK = 200


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of judge.

    ``name`` is stored with endpoints, ``title`` is displayed. ``open`` builds a client from a :class:`Connection` and
    the endpoint columns named in ``settings``. A provider that is not ``remote`` has no endpoint and gets no arguments.
    ``address`` is the usual base URL, shown as an example. ``parameters`` are the judge parameters that it takes; with
    ``None`` all are sent unchanged. ``response_formats`` are the formats that the preflight tries, best first; the last
    needs no server support. ``logprobs``: replies can contain log probabilities, requested by ``logprobs`` and
    ``top_logprobs``. ``batches``: ``contrib.batches`` has a client for the server's batches.
    ``embeddings``: the server offers them in OpenAI's format."""

    name: str
    title: Bilingual
    open: Callable[..., JudgeClient]
    remote: bool = True
    address: str = ""
    settings: tuple[str, ...] = ()
    parameters: tuple[str, ...] | None = None
    response_formats: tuple[ResponseFormat, ...] = tuple(ResponseFormat)
    logprobs: bool = False
    batches: bool = False
    embeddings: bool = False

    @property
    def options(self) -> frozenset[str]:
        """Optional endpoint columns that this provider uses."""
        offered = {"batches": self.batches, "embedding_model": self.embeddings}
        return frozenset(self.settings) | {name for name, supported in offered.items() if supported}

    def check_parameters(self, parameters: Mapping[str, Any], *, logprobs: bool = False) -> None:
        """Refuse parameters that the provider does not take. ``logprobs``: the judge needs log probabilities.

        :raises DomainError: ``parameters_unsupported``, ``logprobs_unsupported``."""
        title = self.title.in_language("en")
        if logprobs and not self.logprobs:
            raise DomainError("logprobs_unsupported", provider=title)
        if self.parameters is not None and (names := sorted(parameters.keys() - set(self.parameters))):
            supported = ", ".join(self.parameters)
            raise DomainError("parameters_unsupported", provider=title, names=", ".join(names), supported=supported)


class Connection(TypedDict):
    """Address, key and operator limits of a server."""

    base_url: str
    key: NotRequired[str]
    allowed_origins: Iterable[str]
    deadlines: NotRequired[Deadlines]


class EndpointJudge(ABC):
    """Judge behind a server: one call is one HTTP request, and every fault becomes a reply. Use with ``async with``.

    Subclasses implement ``path``, ``body`` and ``read``, and ``headers`` if they depend on the request.

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

    async def headers(self, url: str, body: bytes) -> Mapping[str, str]:
        """Headers of one request, such as its signature.

        :raises TransportFault: if there are none, so that nothing is sent."""
        return {}

    async def send(self, request: JudgeCall) -> HttpResponse:
        """Send one request within the total deadline.

        :raises TransportFault: without a response."""
        url, body = self._base_url.rstrip("/") + self.path(request), self.body(request)
        return await self._transport.request("POST", url, body, await self.headers(url, body))

    async def call(self, request: JudgeCall) -> JudgeReply:
        """Send one request within the total deadline. Cancelling closes the connection."""
        started = time.monotonic()
        reply = await self._send(request)
        return replace(reply, elapsed_seconds=time.monotonic() - started, ended_at=time.time())

    async def _send(self, request: JudgeCall) -> JudgeReply:
        try:
            response = await self.send(request)
        except TransportFault as fault:
            return JudgeReply(fault.outcome, detail=str(fault)[:200])
        reply = self.read(response)
        if reply.outcome in {Outcome.OK, Outcome.PARSE} and response.status == _OK:
            return reply
        retry_after = retry_after_seconds(response.headers, datetime.now(UTC))
        if retry_after is None:
            retry_after = reply.retry_after
        shown = self.read(replace(response, body=without_secrets(response.body, self.secrets())))
        return replace(reply, raw=shown.raw, retry_after=retry_after)

    def secrets(self) -> Iterable[str]:
        """Key and other secrets that requests contain."""
        return (self._key,)

    async def __aenter__(self) -> Self:
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


def split_messages(request: JudgeCall) -> tuple[str, list[dict[str, str]]]:
    """Text of the system messages, and the turns of user and assistant."""
    messages = chat_messages(request)
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    return system, [message for message in messages if message["role"] != "system"]


def rename_parameters(parameters: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Parameters that ``names`` contains, under the provider's names. ``stop`` becomes a list."""
    renamed = {names[name]: value for name, value in parameters.items() if name in names}
    stop = names.get("stop")
    if stop in renamed and isinstance(renamed[stop], str):
        renamed[stop] = [renamed[stop]]
    return renamed


def member(value: Any, name: str) -> Any:
    """Member of a JSON object; ``None`` if ``value`` is not an object."""
    return value.get(name) if isinstance(value, Mapping) else None


def members(value: Any, name: str) -> list[Mapping[str, Any]] | None:
    """List of objects in a JSON object; ``None`` for anything else."""
    items = member(value, name)
    return items if isinstance(items, list) and all(isinstance(item, Mapping) for item in items) else None


def cached_usage(
    *, tokens_in: Any, tokens_out: Any, cache_read: Any, cache_written: Any, reasoning: Any = None
) -> Usage:
    """Usage of an API that counts cached input apart from other input.

    Input written to a cache has a price of its own, which price tables lack. Its count makes the input unknown."""
    cached = 0 if cache_read is None and tokens_in is not None else cache_read
    parts = [read_count(tokens_in, MAX_TOKENS), read_count(cached, MAX_TOKENS)]
    unknown = None in parts or cache_written
    return read_usage(
        {
            "prompt_tokens": None if unknown else sum(filter(None, parts)),
            "completion_tokens": tokens_out,
            "cached_tokens": cached,
            "reasoning_tokens": reasoning,
        }
    )


def build_reply(
    body: bytes,
    *,
    texts: Sequence[Any] | None,
    arguments: Sequence[Any] = (),
    finish_reason: Any,
    model: Any,
    usage: Usage,
) -> JudgeReply:
    """Reply of a 200 response: ``arguments`` of tool calls if there are any, else the joined ``texts``.

    Several tool calls are joined by line breaks, so that they do not parse as one verdict. ``texts`` are ``None`` if
    the response does not have the provider's form. A repeated key makes arguments ambiguous."""
    readable = texts is not None and all(isinstance(text, str) for text in texts)
    if not readable or (arguments and has_duplicate_keys(body)):
        return JudgeReply(Outcome.WRONG_CONTENT, raw=excerpt(body), http_status=_OK, detail=f"HTTP {_OK}")
    text = "\n".join(json.dumps(value, ensure_ascii=False) for value in arguments) or "".join(texts or ())
    outcome, detail = finish_outcome(classify_finish_reason(finish_reason)), f"HTTP {_OK}"
    if outcome is Outcome.UNKNOWN_ENDING:
        detail += f" finish_reason {replace_unstorable(str(finish_reason))[:60]}"
    return JudgeReply(
        outcome,
        raw=replace_unstorable(text),
        http_status=_OK,
        detail=detail,
        model_returned=replace_unstorable(model)[:200] if isinstance(model, str) else "",
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_cached=usage.cached,
        tokens_reasoning=usage.reasoning,
    )
