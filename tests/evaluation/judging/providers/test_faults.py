"""One table of faults for all providers: each fault has the same outcome, whatever its wire format."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from evaluation.judging.calls import JudgeReply, ResponseFormat
from evaluation.judging.providers.catalogue import endpoint_providers, provider_named
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines
from tests.evaluation.judging.samples import EN, call
from tests.judge_server import JudgeServer, actions
from tests.judge_server.actions import Action
from tests.judge_server.wire import native_reply, respond

KEY = "key-secret-0123456789"
PROVIDERS = [provider.name for provider in endpoint_providers()]
AN_HOUR_AGO = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
RESET = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"

# Type of the error by status, as each provider's reference lists them.
ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
BEDROCK_TYPES = {
    401: "MissingAuthenticationTokenException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
    529: "ServiceUnavailableException",
}
GEMINI_TYPES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    529: "UNAVAILABLE",
}


def anthropic_error(status: int, kind: str = "", message: str = "scripted", **headers: str) -> Action:
    error = {"type": kind or ANTHROPIC_TYPES[status], "message": message}
    return respond(status, {"type": "error", "error": error, "request_id": "req_1"}, **headers)


def bedrock_error(status: int, kind: str = "", message: str = "scripted", **headers: str) -> Action:
    name = f"{kind or BEDROCK_TYPES[status]}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return respond(status, {"message": message}, **{"x_amzn_ErrorType": name, **headers})


def gemini_error(status: int, kind: str = "", message: str = "scripted", details: Any = (), **headers: str) -> Action:
    error = {"code": status, "message": message, "status": kind or GEMINI_TYPES[status], "details": list(details)}
    return respond(status, {"error": error}, **headers)


ERRORS: Mapping[str, Any] = {
    "openai": lambda status, **headers: actions.status(status, retry_after=headers.get("Retry_After")),
    "anthropic": anthropic_error,
    "bedrock": bedrock_error,
    "gemini": gemini_error,
}


@dataclass(frozen=True)
class Fault:
    """A fault with its outcome and the wait that the reply asks for. ``scripted`` has the providers whose response is
    not just an error with this ``status``."""

    outcome: Outcome
    status: int = 0
    headers: Mapping[str, str] | None = None
    retry_after: float | None = None
    scripted: Mapping[str, Action] | None = None
    # Providers with another outcome.
    others: Mapping[str, Outcome] | None = None

    def action(self, provider: str) -> Action:
        if provider in (self.scripted or {}):
            return self.scripted[provider]
        return ERRORS[provider](self.status, **(self.headers or {}))


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
INVALID_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
FAULTS = {
    "401": Fault(Outcome.UNAUTHORISED, 401),
    "403": Fault(Outcome.FORBIDDEN, 403),
    "404 model": Fault(Outcome.NOT_FOUND, 404),
    "408": Fault(Outcome.TIMEOUT, 408),
    "429 with Retry-After": Fault(Outcome.RATE_LIMITED, 429, {"Retry_After": "7"}, 7.0),
    "429 without Retry-After": Fault(Outcome.RATE_LIMITED, 429),
    "500": Fault(Outcome.SERVER_ERROR, 500),
    "503": Fault(Outcome.OVERLOADED, 503),
    "529": Fault(Outcome.OVERLOADED, 529),
    "refusal": Fault(
        Outcome.REFUSED,
        scripted={
            "openai": actions.text(None, refusal="No."),
            **dict.fromkeys(["anthropic", "bedrock", "gemini"], native_reply("refused", "")),
        },
        # Guardrails and safety filters block; they are not the model's refusal.
        others={"bedrock": Outcome.FILTERED, "gemini": Outcome.FILTERED},
    ),
    "truncation": Fault(
        Outcome.TRUNCATED,
        scripted={
            "openai": actions.text('{"corr', finish_reason="length"),
            **dict.fromkeys(["anthropic", "bedrock", "gemini"], native_reply("length", '{"corr')),
        },
    ),
    "connection reset in the reply": Fault(Outcome.CONNECTION, scripted=dict.fromkeys(PROVIDERS, actions.raw(RESET))),
    "connection reset before the reply": Fault(
        Outcome.CONNECTION, scripted=dict.fromkeys(PROVIDERS, actions.disconnect())
    ),
    "throttling": Fault(
        Outcome.RATE_LIMITED,
        scripted={
            # In a response with status 200, as gateways send it.
            "openai": actions.body({"error": {"code": "throttling", "message": "Slow down."}}),
            "anthropic": respond(200, {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow."}}),
            "bedrock": bedrock_error(429, message="Too many tokens, please wait before trying again."),
            "gemini": gemini_error(429, details=[RETRY_INFO]),
        },
    ),
    "expired credentials": Fault(
        Outcome.UNAUTHORISED,
        scripted={
            "openai": actions.status(401, error_code="invalid_api_key"),
            "anthropic": anthropic_error(401, message="API key has expired."),
            "bedrock": bedrock_error(403, "ExpiredTokenException", "The security token included is expired"),
            "gemini": gemini_error(400, "INVALID_ARGUMENT", "API key expired.", [INVALID_KEY]),
        },
    ),
    # A key has no date. There a wrong clock shows only in a wait that ended before it began.
    "clock skew": Fault(
        Outcome.RATE_LIMITED,
        429,
        {"Retry_After": AN_HOUR_AGO},
        0.0,
        scripted={"bedrock": bedrock_error(403, "InvalidSignatureException", "Signature expired: 1 is now earlier")},
        others={"bedrock": Outcome.UNAUTHORISED},
    ),
}
WAITS = {("gemini", "throttling"): 7.0, ("bedrock", "clock skew"): None}


async def call_once(provider: str, server: JudgeServer) -> JudgeReply:
    url = server.base_url if provider == "openai" else f"{server.origin}/other"
    deadlines = Deadlines(connect=10, read=10, total=10)
    options = {"base_url": url, "key": KEY, "allowed_origins": [server.origin], "deadlines": deadlines}
    async with provider_named(provider).open(**options) as client:
        return await client.call(call())


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", FAULTS)
def test_fault_has_the_same_outcome_for_every_provider(judge_server: JudgeServer, provider: str, name: str) -> None:
    fault = FAULTS[name]
    judge_server.enqueue(fault.action(provider))
    reply = asyncio.run(call_once(provider, judge_server))
    assert reply.outcome is (fault.others or {}).get(provider, fault.outcome)
    assert reply.retry_after == WAITS.get((provider, name), fault.retry_after)
    assert judge_server.calls == 1
    assert KEY not in repr(reply)


def test_table_covers_every_provider() -> None:
    assert set(PROVIDERS) == set(ERRORS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_redirects_are_refused(judge_server: JudgeServer, provider: str) -> None:
    judge_server.enqueue(actions.redirect("http://169.254.169.254/"))
    assert asyncio.run(call_once(provider, judge_server)).outcome is Outcome.REDIRECT
    assert judge_server.calls == 1


NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@pytest.mark.parametrize("response_format", [ResponseFormat.JSON_SCHEMA, ResponseFormat.TOOL])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_names_of_schemas_and_tools_are_accepted_by_the_provider(
    provider: str, response_format: ResponseFormat
) -> None:
    """Every provider refuses other characters with 400. Families of criteria have a colon."""
    criterion = EN.model_copy(update={"family": f"criterion:{'tone' * 20}"})
    client = provider_named(provider).open(base_url="https://a.example", key=KEY, allowed_origins=["https://a.example"])
    body = json.loads(client.body(replace(call(), rubric=criterion, response_format=response_format)))
    names = list(values_of("name", body)) + list(values_of("allowedFunctionNames", body))
    assert names or (response_format is ResponseFormat.JSON_SCHEMA and provider in {"anthropic", "gemini"})
    assert all(NAME.fullmatch(name) for name in names if isinstance(name, str))
    assert "criterion_" in str(names) or not names


def values_of(key: str, value: Any) -> Iterator[Any]:
    """All values of the key in a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in members:
        if name == key:
            yield part
        yield from values_of(key, part)
