"""System behind an HTTP address: a request with named slots, and a JSON reply or an event stream."""

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

from evaluation.connectors.events import StreamContent, read_events
from evaluation.connectors.mapping import Expression, ReplyMapping, search_path
from evaluation.connectors.protocol import (
    AskFailed,
    Connector,
    OperatorPolicy,
    Settings,
    SystemAnswer,
    SystemCall,
    SystemClient,
    SystemReply,
    failed_reply,
)
from evaluation.connectors.slots import SLOT, SLOTS, fill_address, fill_slots, slot_values, unknown_slots
from evaluation.core.errors import DomainError
from evaluation.network.origins import parse_origin
from evaluation.network.outcomes import Outcome, excerpt, read_json, status_outcome, without_secrets
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, Exchange, GuardedTransport, HttpResponse

VARIABLE = re.compile(r"SYSTEM_[A-Z0-9_]{1,80}")
_VARIABLE_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_RESERVED_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "cookie", "te"}
)
_SECRET = re.compile(r"authorization|api-?key|token|secret|password", re.IGNORECASE)
_OK = range(200, 300)
MAX_REPLY_BYTES = 64_000_000
MAX_HEADER_CHARACTERS = 2_000


def check_slots(template: Any) -> Any:
    """Return the template if all its slots are known.

    :raises PydanticCustomError: ``slot_unknown`` with the first unknown slot."""
    if unknown := unknown_slots(template):
        slot_names = ", ".join(f"{{{name}}}" for name in SLOTS)
        params = {"slot": f"{{{unknown[0]}}}", "known": slot_names}
        raise PydanticCustomError("slot_unknown", "unknown slot {slot}; available: {known}", params)
    return template


class HttpSettings(Settings):
    """HTTP service. Address and body contain slots such as ``{question}``; ``${SYSTEM_…}`` in a header is an
    environment variable."""

    method: Literal["POST", "GET", "PUT"] = Field(default="POST", description="HTTP method.")
    address: str = Field(max_length=2000, description="https://host/path; slots may follow the host.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="Additional headers; write secrets as ${SYSTEM_NAME}."
    )
    body: Any = Field(default={"question": "{question}", "k": "{k}"}, description="JSON body; unused with GET.")
    stream: bool = Field(default=False, description="The reply is an event stream (text/event-stream).")
    delta: Expression = Field(default="delta", description="Next piece of the answer in an event of a stream.")
    end: str = Field(
        default="", max_length=100, description="Last event of a stream, such as [DONE]; a stream without it is broken."
    )
    reply: ReplyMapping = Field(default_factory=ReplyMapping, description="JMESPath of each part of the answer.")
    most_bytes: int = Field(default=4_000_000, ge=1_000, le=MAX_REPLY_BYTES, description="Maximum reply size in bytes.")

    @field_validator("address")
    @classmethod
    def _check_address(cls, address: str) -> str:
        try:
            parse_origin(address.partition("?")[0])
        except DomainError as error:
            raise PydanticCustomError("address_invalid", "not an http(s) address in ASCII without user name") from error
        check_slots(address)
        return address

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            variables = _VARIABLE_REFERENCE.findall(value)
            params = {"name": name[:100]}
            if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
                raise PydanticCustomError("header_refused", "the header {name} cannot be set", params)
            if re.search(r"[^\x20-\x7e]", value) or len(value) > MAX_HEADER_CHARACTERS:
                raise PydanticCustomError("header_value", "the value of {name} is not valid in a header", params)
            if not all(VARIABLE.fullmatch(variable) for variable in variables):
                raise PydanticCustomError("variable_refused", "{name}: variable names begin with SYSTEM_", params)
            if _SECRET.search(name) and not variables:
                raise PydanticCustomError("secret_written", "{name}: write ${{SYSTEM_NAME}}, not the secret", params)
        return headers

    @field_validator("body")
    @classmethod
    def _check_body(cls, body: Any) -> Any:
        return check_slots(body)

    @model_validator(mode="after")
    def _has_question_slot(self) -> Self:
        template = self.address if self.method == "GET" else json.dumps([self.address, self.body])
        if not {"question", "query", "id", "history"} & set(SLOT.findall(template)):
            raise PydanticCustomError("no_question", "the body or the address needs a slot for the question")
        return self


def resolve_headers(headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Headers with their variables replaced.

    :raises DomainError: ``variable_missing`` if one is unset or invalid in a header."""

    def value(match: re.Match[str]) -> str:
        text = variables.get(match[1], "")
        if not text or re.search(r"[^\x20-\x7e]", text):
            raise DomainError("variable_missing", variable=match[1])
        return text

    return {name: _VARIABLE_REFERENCE.sub(value, template) for name, template in headers.items()}


class HttpSystem(SystemClient):
    """Client of an HTTP address."""

    def __init__(self, settings: HttpSettings, policy: OperatorPolicy) -> None:
        self._settings = settings
        self.deadline = settings.timeout_seconds
        deadlines = Deadlines(read=settings.timeout_seconds, total=settings.timeout_seconds)
        headers = resolve_headers(settings.headers, policy.variables)
        names = {name for value in settings.headers.values() for name in _VARIABLE_REFERENCE.findall(value)}
        self._secrets = [policy.variables[name] for name in sorted(names)]
        if settings.stream:
            headers = {"Accept": "text/event-stream", **headers}
        self._transport = GuardedTransport(
            settings.address.partition("?")[0],
            allowed_origins=policy.origins,
            deadlines=deadlines,
            max_bytes=settings.most_bytes,
            headers=headers,
        )

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """Method, address, headers with unresolved variables, and body."""
        described = {"method": self._settings.method, "address": self._address(call), "headers": self._settings.headers}
        return described if self._settings.method == "GET" else described | {"body": self.body(call)}

    def body(self, call: SystemCall) -> Any:
        return fill_slots(self._settings.body, slot_values(call))

    async def ask(self, call: SystemCall) -> SystemReply:
        started = time.monotonic()
        async with aclosing(await self.send_request(call)) as response:
            if response.status not in _OK:
                return self._error_reply(await response.read_whole())
            if self._settings.stream:
                return await self._read_stream(response, call, started)
            return self._read(await response.read_whole(), call)

    async def send_request(self, call: SystemCall) -> Exchange:
        """Send the request and return the response once its headers arrive."""
        method = self._settings.method
        body = b"" if method == "GET" else json.dumps(self.body(call)).encode()
        return await self._transport.open(method, self._address(call), body)

    def read_answer(self, find: Any, call: SystemCall) -> SystemAnswer:
        """Answer in the reply; ``find`` gives the value of an expression.

        :raises AskFailed: if there is none."""
        return self._settings.reply.read(find, call)

    def _address(self, call: SystemCall) -> str:
        return fill_address(self._settings.address, slot_values(call))

    def _read(self, response: HttpResponse, call: SystemCall) -> SystemReply:
        content_type = response.headers.get("content-type", "")
        transport_fields: dict[str, Any] = {"raw": excerpt(response.body), "http_status": response.status}
        value = read_json(response.body) if "json" in content_type.lower() else None
        if value is None:
            detail = f"not valid JSON, content type {content_type[:80] or 'none'}"
            transport_fields["raw"] = self._excerpt(response)
            return failed_reply(Outcome.WRONG_CONTENT, detail=detail, **transport_fields)
        return self._build_reply(lambda expression: search_path(expression, value), call, transport_fields)

    async def _read_stream(self, response: Exchange, call: SystemCall, started: float) -> SystemReply:
        content_type = response.headers.get("content-type", "")
        if "event-stream" not in content_type.lower():
            full_response = await response.read_whole()
            detail = f"not an event stream, content type {content_type[:80] or 'none'}"
            raw = self._excerpt(full_response)
            return failed_reply(Outcome.WRONG_CONTENT, detail=detail, raw=raw, http_status=full_response.status)
        streamed: StreamContent = await read_events(response.chunks, self._settings.delta, self._settings.end, started)
        transport_fields: dict[str, Any] = {"raw": streamed.raw, "http_status": response.status}
        if streamed.error is not None:
            return failed_reply(Outcome.WRONG_CONTENT, "system_error", streamed.error, **transport_fields)

        def find(expression: str) -> Any:
            if expression == self._settings.reply.answer and streamed.pieces:
                return streamed.text
            return streamed.find(expression)

        return self._build_reply(find, call, transport_fields, streamed.first_token_seconds)

    def _build_reply(
        self, find: Any, call: SystemCall, transport_fields: Mapping[str, Any], first_token_seconds: float | None = None
    ) -> SystemReply:
        try:
            content = self.read_answer(find, call)
        except AskFailed as error:
            return failed_reply(error.outcome, error.code, error.detail, **transport_fields)
        timing = {} if first_token_seconds is None else {"first_token_seconds": round(first_token_seconds, 4)}
        timed_content = SystemAnswer(
            content.answer,
            content.confidence,
            content.tokens_in,
            content.tokens_out,
            content.model,
            first_token_seconds,
            {**content.metadata, **timing},
        )
        return SystemReply(Outcome.OK, content=timed_content, **transport_fields)

    def _error_reply(self, response: HttpResponse) -> SystemReply:
        outcome = status_outcome(response.status)
        retry_after = retry_after_seconds(response.headers, datetime.now(UTC))
        transport_fields: dict[str, Any] = {
            "raw": self._excerpt(response),
            "http_status": response.status,
            "retry_after": retry_after,
        }
        return failed_reply(outcome, detail=f"HTTP {response.status}", **transport_fields)

    def _excerpt(self, response: HttpResponse) -> str:
        return excerpt(without_secrets(response.body, self._secrets))

    async def __aexit__(self, *error: object) -> None:
        await self._transport.aclose()


HTTP = Connector("http", HttpSettings, HttpSystem)
