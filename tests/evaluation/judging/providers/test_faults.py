"""Tests of every provider: verdicts in each response format, and one table of faults, which have the same outcome
whatever the wire format."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from evaluation.judging.calls import JudgeReply, ResponseFormat
from evaluation.judging.prompt import parse_reply
from evaluation.judging.providers.catalogue import endpoint_providers, provider_named
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines
from tests.evaluation.judging.providers.native import KEY, send
from tests.evaluation.judging.samples import EN, call, make_scores_request
from tests.judge_server import JudgeServer, actions
from tests.judge_server.actions import Action
from tests.judge_server.formats import FORMATS
from tests.judge_server.wire import native_reply, respond

PROVIDERS = [provider.name for provider in endpoint_providers()]
AN_HOUR_AGO = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
RESET = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"


@dataclass(frozen=True)
class Fault:
    """A fault with its outcome and the wait that the reply asks for. The response is that of the wire format's
    ``faults``, of OpenAI's here, or ``scripted``, else an error with this ``status``."""

    outcome: Outcome
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    openai: Action | None = None
    scripted: Action | None = None


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
    "refusal": Fault(Outcome.REFUSED, openai=actions.text(None, refusal="No."), scripted=native_reply("refused", "")),
    "truncation": Fault(
        Outcome.TRUNCATED,
        openai=actions.text('{"corr', finish_reason="length"),
        scripted=native_reply("length", '{"corr'),
    ),
    "connection reset in the reply": Fault(Outcome.CONNECTION, scripted=actions.raw(RESET)),
    "connection reset before the reply": Fault(Outcome.CONNECTION, scripted=actions.disconnect()),
    "throttling": Fault(
        Outcome.RATE_LIMITED,
        429,
        # In a response with status 200, as gateways send it.
        openai=actions.body({"error": {"code": "throttling", "message": "Slow down."}}),
    ),
    "expired credentials": Fault(Outcome.UNAUTHORISED, 401, openai=actions.status(401, error_code="invalid_api_key")),
    # A key has no date. There a wrong clock shows only in a wait that ended before it began.
    "clock skew": Fault(Outcome.RATE_LIMITED, 429, {"Retry_After": AN_HOUR_AGO}, 0.0),
}


def action(provider: str, name: str) -> Action:
    """The response of the provider's server to a call with the fault."""
    fault = FAULTS[name]
    if provider == "openai":
        retry_after = fault.headers.get("Retry_After")
        return fault.openai or fault.scripted or actions.status(fault.status, retry_after=retry_after)
    wire = FORMATS[provider]
    if fault.scripted:
        return fault.scripted
    status, body, headers = wire.faults.get(name) or wire.error(fault.status, **fault.headers)
    return respond(status, body, **headers)


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
    wire = FORMATS.get(provider)
    judge_server.enqueue(action(provider, name))
    reply = asyncio.run(call_once(provider, judge_server))
    assert reply.outcome is (wire.outcomes if wire else {}).get(name, fault.outcome)
    assert reply.retry_after == (wire.waits if wire else {}).get(name, fault.retry_after)
    assert judge_server.calls == 1
    assert KEY not in repr(reply)


def test_every_provider_has_a_wire_format_whose_faults_are_in_the_table() -> None:
    assert set(PROVIDERS) == {"openai", *FORMATS}
    assert all({*wire.faults, *wire.outcomes, *wire.waits} <= FAULTS.keys() for wire in FORMATS.values())


@pytest.mark.parametrize(
    ("provider", "response_format"),
    [(name, response_format) for name in FORMATS for response_format in provider_named(name).response_formats],
)
def test_verdict_is_read_in_each_response_format(
    judge_server: JudgeServer, provider: str, response_format: ResponseFormat
) -> None:
    parameters = {"max_tokens": 50, "model": "dear", "messages": []}
    request = replace(call(), response_format=response_format, parameters=parameters)
    reply = send(provider, judge_server, request, native_reply())
    assert (reply.outcome, reply.tokens_in, reply.tokens_out) == (Outcome.OK, 900, 60)
    assert parse_reply(reply, make_scores_request(), response_format).outcome is Outcome.OK
    received = judge_server.requests[0]
    assert received.chat["model"] == "judge-1"
    assert ": 50" in json.dumps(received.body)
    assert KEY not in str(received.body)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_redirects_are_refused(judge_server: JudgeServer, provider: str) -> None:
    judge_server.enqueue(actions.redirect("http://169.254.169.254/"))
    assert asyncio.run(call_once(provider, judge_server)).outcome is Outcome.REDIRECT
    assert judge_server.calls == 1


NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("provider", "response_format"),
    [
        (provider.name, response_format)
        for provider in endpoint_providers()
        for response_format in (ResponseFormat.JSON_SCHEMA, ResponseFormat.TOOL)
        if response_format in provider.response_formats
    ],
)
def test_names_of_schemas_and_tools_are_accepted_by_the_provider(
    provider: str, response_format: ResponseFormat
) -> None:
    """Every provider refuses other characters with 400. Families of criteria have a colon."""
    criterion = EN.model_copy(update={"family": f"criterion:{'tone' * 20}"})
    client = provider_named(provider).open(base_url="https://a.example", key=KEY, allowed_origins=["https://a.example"])
    body = json.loads(client.body(replace(call(), rubric=criterion, response_format=response_format)))
    names = list(values_of("name", body)) + list(values_of("allowedFunctionNames", body))
    # A schema has no name in some formats.
    assert names or response_format is ResponseFormat.JSON_SCHEMA
    assert all(NAME.fullmatch(name) for name in names if isinstance(name, str))
    assert "criterion_" in str(names) or not names


def values_of(key: str, value: Any) -> Iterator[Any]:
    """All values of the key in a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in members:
        if name == key:
            yield part
        yield from values_of(key, part)
