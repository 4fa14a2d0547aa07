"""A system behind an HTTP address: a request with named slots, a JSON reply or a stream of events."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from evaluation.connectors.events import Streamed, read_events
from evaluation.connectors.mapping import Expression, ReplyMapping, searched
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    Settings,
    Surroundings,
    SystemCall,
    SystemClient,
    SystemReply,
    Told,
    failed,
)
from evaluation.connectors.slots import SLOT, SLOTS, filled, filled_address, unknown_slots, values
from evaluation.core.errors import Refused
from evaluation.network.origins import origin_of
from evaluation.network.outcomes import Outcome, excerpt, outcome_of_status, read_json
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, Exchange, GuardedTransport, HttpResponse

VARIABLE = re.compile(r"SYSTEM_[A-Z0-9_]{1,80}")
_NAMED_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "cookie", "te"})
_SECRET = re.compile(r"authorization|api-?key|token|secret|password", re.IGNORECASE)
_OK = range(200, 300)
MOST_BYTES = 64_000_000
LONGEST_HEADER = 2_000


def refused_slots(template: Any) -> Any:
    """The template, whose slots are all known.

    :raises PydanticCustomError: ``slot_unknown``, naming the first that is not.
    """
    if unknown := unknown_slots(template):
        known = ", ".join(f"{{{name}}}" for name in SLOTS)
        told = {"slot": f"{{{unknown[0]}}}", "known": known}
        raise PydanticCustomError("slot_unknown", "unknown slot {slot}; there are {known}", told)
    return template


class HttpSettings(Settings):
    """An HTTP service. Slots such as ``{question}`` stand in the address and in the body; ``${SYSTEM_…}`` in a header
    is the environment variable of that name."""

    method: Literal["POST", "GET", "PUT"] = Field(default="POST", description="How the address is asked.")
    address: str = Field(max_length=2000, description="https://host/path; slots may stand behind the host.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers beside the usual ones; a secret as ${SYSTEM_NAME}."
    )
    body: Any = Field(default={"question": "{question}", "k": "{k}"}, description="The JSON body; unused with GET.")
    stream: bool = Field(default=False, description="The reply is a stream of events (text/event-stream).")
    delta: Expression = Field(default="delta", description="In an event of a stream: the next piece of the answer.")
    end: str = Field(
        default="", max_length=100, description="What a stream's last event says, such as [DONE]; without it: broken."
    )
    reply: ReplyMapping = Field(default_factory=ReplyMapping, description="Where the parts of the answer stand.")
    most_bytes: int = Field(default=4_000_000, ge=1_000, le=MOST_BYTES, description="Longest reply that is read.")

    @field_validator("address")
    @classmethod
    def _plain(cls, address: str) -> str:
        try:
            origin_of(address.partition("?")[0])
        except Refused as error:
            raise PydanticCustomError("address_invalid", "no plain http(s) address in ASCII, without user") from error
        refused_slots(address)
        return address

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            named = _NAMED_VARIABLE.findall(value)
            told = {"name": name[:100]}
            if not _HEADER.fullmatch(name) or name.lower() in _OURS:
                raise PydanticCustomError("header_refused", "the header {name} cannot be set", told)
            if re.search(r"[^\x20-\x7e]", value) or len(value) > LONGEST_HEADER:
                raise PydanticCustomError("header_value", "{name} has a value that no header can hold", told)
            if not all(VARIABLE.fullmatch(one) for one in named):
                raise PydanticCustomError("variable_refused", "{name}: variables are named SYSTEM_…", told)
            if _SECRET.search(name) and not named:
                raise PydanticCustomError("secret_written", "{name}: write ${{SYSTEM_NAME}}, not the secret", told)
        return headers

    @field_validator("body")
    @classmethod
    def _known_slots(cls, body: Any) -> Any:
        return refused_slots(body)

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        template = self.address if self.method == "GET" else json.dumps([self.address, self.body])
        if not {"question", "query", "id", "history"} & set(SLOT.findall(template)):
            raise PydanticCustomError("no_question", "no slot for the question in the body or the address")
        return self


def resolved(headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of the variables they name.

    :raises Refused: ``variable_missing`` where one is not set, or cannot stand in a header.
    """

    def value(match: re.Match[str]) -> str:
        found = variables.get(match[1], "")
        if not found or re.search(r"[^\x20-\x7e]", found):
            raise Refused("variable_missing", variable=match[1])
        return found

    return {name: _NAMED_VARIABLE.sub(value, given) for name, given in headers.items()}


class HttpSystem(SystemClient):
    """Asks an address."""

    def __init__(self, settings: HttpSettings, around: Surroundings) -> None:
        self._settings = settings
        self.deadline = settings.timeout_seconds
        deadlines = Deadlines(read=settings.timeout_seconds, total=settings.timeout_seconds)
        headers = resolved(settings.headers, around.variables)
        if settings.stream:
            headers = {"Accept": "text/event-stream", **headers}
        self._transport = GuardedTransport(
            settings.address.partition("?")[0],
            allowed_origins=around.origins,
            deadlines=deadlines,
            most_bytes=settings.most_bytes,
            headers=headers,
        )

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """Method, address, headers with the names of their variables, and body."""
        described = {"method": self._settings.method, "address": self._address(call), "headers": self._settings.headers}
        return described if self._settings.method == "GET" else described | {"body": self.body(call)}

    def body(self, call: SystemCall) -> Any:
        """What is sent as JSON."""
        return filled(self._settings.body, values(call))

    async def ask(self, call: SystemCall) -> SystemReply:
        """Send the request and read the reply."""
        started = time.monotonic()
        async with aclosing(await self.sent(call)) as response:
            if response.status not in _OK:
                return self._refused(await response.whole())
            if self._settings.stream:
                return await self._streamed(response, call, started)
            return self._read(await response.whole(), call)

    async def sent(self, call: SystemCall) -> Exchange:
        """Send the request; the response as soon as its head is there."""
        method = self._settings.method
        body = b"" if method == "GET" else json.dumps(self.body(call)).encode()
        return await self._transport.open(method, self._address(call), body)

    def told(self, find: Any, call: SystemCall) -> Told:
        """The answer in the reply; ``find`` gives the value of an expression.

        :raises AskFailed: where there is none.
        """
        return self._settings.reply.read(find, call)

    def _address(self, call: SystemCall) -> str:
        return filled_address(self._settings.address, values(call))

    def _read(self, response: HttpResponse, call: SystemCall) -> SystemReply:
        kind = response.headers.get("content-type", "")
        seen: dict[str, Any] = {"raw": excerpt(response.body), "http_status": response.status}
        value = read_json(response.body) if "json" in kind.lower() else None
        if value is None:
            return failed(Outcome.WRONG_CONTENT, detail=f"no JSON, but {kind[:80] or 'nothing'}", **seen)
        return self._mapped(lambda expression: searched(expression, value), call, seen)

    async def _streamed(self, response: Exchange, call: SystemCall, started: float) -> SystemReply:
        kind = response.headers.get("content-type", "")
        if "event-stream" not in kind.lower():
            whole = await response.whole()
            detail = f"no stream of events, but {kind[:80] or 'nothing'}"
            return failed(Outcome.WRONG_CONTENT, detail=detail, raw=excerpt(whole.body), http_status=whole.status)
        streamed: Streamed = await read_events(response.chunks, self._settings.delta, self._settings.end, started)
        seen: dict[str, Any] = {"raw": streamed.raw, "http_status": response.status}
        if streamed.error is not None:
            return failed(Outcome.WRONG_CONTENT, "system_error", streamed.error, **seen)

        def find(expression: str) -> Any:
            if expression == self._settings.reply.answer and streamed.pieces:
                return streamed.text
            return streamed.find(expression)

        return self._mapped(find, call, seen, streamed.first_token_seconds)

    def _mapped(self, find: Any, call: SystemCall, seen: Mapping[str, Any], first: float | None = None) -> SystemReply:
        try:
            told = self.told(find, call)
        except AskFailed as error:
            return failed(error.outcome, error.code, error.detail, **seen)
        kept = {} if first is None else {"first_token_seconds": round(first, 4)}
        from_stream = Told(
            told.answer, told.confidence, told.tokens_in, told.tokens_out, told.model, first, {**told.metadata, **kept}
        )
        return SystemReply(Outcome.OK, told=from_stream, **seen)

    def _refused(self, response: HttpResponse) -> SystemReply:
        outcome = outcome_of_status(response.status)
        waiting = retry_after_seconds(response.headers, datetime.now(UTC))
        seen: dict[str, Any] = {"raw": excerpt(response.body), "http_status": response.status, "retry_after": waiting}
        return failed(outcome, detail=f"HTTP {response.status}", **seen)

    async def __aexit__(self, *error: object) -> None:
        await self._transport.aclose()


HTTP = Connector("http", HttpSettings, HttpSystem)
