"""Servers with OpenAI's API, each with its known kinds of replies, scripted on the judge server: the rows of the table
in ``docs/judges.md``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from evaluation.judging.calls import JudgeReply, ParsedReply, ResponseFormat, is_other_model
from evaluation.judging.probing import ProbeResult, probe_call, probe_judge
from evaluation.judging.prompt import parse_reply
from evaluation.judging.providers.openai import OpenAIJudge
from evaluation.network.outcomes import Outcome
from tests.judge_server import JudgeServer, actions
from tests.judge_server.actions import Action, completion
from tests.judge_server.answering import answer
from tests.judge_server.received import ReceivedRequest

RequestPredicate = Callable[[ReceivedRequest], bool]


def error(status: int, message: str, *, retry_after: str | None = None, **members: Any) -> Action:
    """An error in the format of OpenAI."""
    return actions.status(status, body=json.dumps({"error": {"message": message, **members}}), retry_after=retry_after)


def first_matching(*rules: tuple[RequestPredicate, Action], otherwise: Action | None = None) -> Action:
    """The action of the first rule that matches the request, else ``otherwise`` or a valid reply."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        action = next((action for fits, action in rules if fits(request)), otherwise or actions.valid_reply())
        return await action(request, http)

    return act


def reshape_content(shape: Callable[[str], Any], **changes: Any) -> Action:
    """A valid verdict with its message content in the given shape."""

    async def act(request: ReceivedRequest, _: web.Request) -> web.StreamResponse:
        body = completion(request, answer(request), as_asked=True, **changes)
        message = body["choices"][0]["message"]
        if message["content"] is not None:
            message["content"] = shape(message["content"])
        return web.json_response(body)

    return act


def has_member(member: str) -> RequestPredicate:
    return lambda request: member in request.body


def has_response_format(*response_formats: str) -> RequestPredicate:
    return lambda request: request.response_format in response_formats


USAGE = {"prompt_tokens": 800, "completion_tokens": 60, "total_tokens": 860}
REASONING_USAGE = {"completion_tokens_details": {"reasoning_tokens": 500}}


@dataclass(frozen=True, slots=True)
class ServerCase:
    """A kind of reply of a server, and the preflight's result: the response format or the reason for failure."""

    name: str
    action: Action
    expected: ResponseFormat | str
    parameters: Mapping[str, Any] | None = None
    tokens_out: int | None = 60
    message: str = ""
    model: str = "judge-1"


CASES = [
    ServerCase("OpenAI", actions.valid_reply(), ResponseFormat.JSON_SCHEMA),
    ServerCase(
        "OpenAI, reasoning model without extras",
        first_matching((has_member("logprobs"), error(403, "You are not allowed to request logprobs from this model"))),
        ResponseFormat.JSON_SCHEMA,
    ),
    ServerCase(
        "OpenAI, reasoning model with max_tokens",
        first_matching(
            (has_member("max_tokens"), error(400, "Use 'max_completion_tokens' instead.", code="unsupported_parameter"))
        ),
        "no_rung",
        {"max_tokens": 300},
        message="HTTP 400 unsupported_parameter: Use 'max_completion_tokens' instead.",
    ),
    ServerCase(
        "OpenAI, reasoning inside completion_tokens",
        actions.valid_reply(
            usage={"prompt_tokens": 800, "completion_tokens": 560, "total_tokens": 1360, **REASONING_USAGE}
        ),
        ResponseFormat.JSON_SCHEMA,
        tokens_out=560,
    ),
    ServerCase(
        "Azure, deployment unknown",
        error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound"),
        "not_found",
        message="HTTP 404 deploymentnotfound: The API deployment for this resource does not exist.",
    ),
    ServerCase("vLLM", actions.valid_reply(), ResponseFormat.JSON_SCHEMA),
    ServerCase(
        "vLLM, template that wants roles to alternate",
        first_matching(
            (
                lambda request: [m["role"] for m in request.body["messages"]].count("user") > 1,
                error(
                    400, "Conversation roles must alternate user/assistant/user/assistant/...", type="BadRequestError"
                ),
            )
        ),
        ResponseFormat.JSON_SCHEMA,
    ),
    ServerCase(
        "vLLM, model at a path",
        actions.valid_reply(model="/models/Qwen3-8B"),
        ResponseFormat.JSON_SCHEMA,
        model="Qwen/Qwen3-8B",
    ),
    ServerCase("vLLM, everything in the reasoning", actions.text(None), "no_rung", message="HTTP 200: empty text"),
    ServerCase(
        "SGLang, no log probabilities",
        first_matching(
            (
                has_member("logprobs"),
                actions.status(500, body='{"object": "error", "message": "list index", "type": "InternalServerError"}'),
            )
        ),
        ResponseFormat.JSON_SCHEMA,
    ),
    ServerCase(
        "SGLang, stop token as finish reason",
        actions.valid_reply(finish_reason="stop_token"),
        ResponseFormat.JSON_SCHEMA,
    ),
    ServerCase(
        "Ollama, tag", actions.valid_reply(model="llama3.1:latest"), ResponseFormat.JSON_SCHEMA, model="llama3.1"
    ),
    ServerCase("Ollama, code fence", reshape_content(lambda text: f"```json\n{text}\n```"), ResponseFormat.JSON_SCHEMA),
    ServerCase(
        "Ollama, model not pulled",
        actions.status(404, body='{"error": {"message": "model \\"x\\" not found, try pulling it first"}}'),
        "not_found",
        message='HTTP 404: model "x" not found, try pulling it first',
    ),
    ServerCase(
        "LM Studio, no tool choice by name and no json_object",
        first_matching(
            (has_response_format("json_schema", "tool"), error(400, "not supported by this model")),
            (
                has_response_format("json_object"),
                actions.status(400, body='{"error": "response_format.type must be json_schema or text"}'),
            ),
        ),
        ResponseFormat.TEXT,
    ),
    ServerCase(
        "LM Studio, an error text inside a 200",
        actions.body({"error": "Unexpected endpoint or method."}),
        "server_error",
        message="HTTP 200: Unexpected endpoint or method.",
    ),
    ServerCase(
        "Groq, no JSON written",
        first_matching(
            (
                has_response_format("json_schema", "tool"),
                error(400, "Failed to validate JSON.", code="json_validate_failed"),
            )
        ),
        ResponseFormat.JSON_OBJECT,
    ),
    ServerCase(
        "OpenRouter, parameters that no provider supports",
        first_matching(
            (has_member("logprobs"), error(404, "No endpoints found that support the requested parameters", code=404))
        ),
        ResponseFormat.JSON_SCHEMA,
    ),
    ServerCase(
        "OpenRouter, credit used up inside a 200",
        actions.body({"error": {"message": "Insufficient credits", "code": 402}}),
        "no_credit",
        message="HTTP 200 402: Insufficient credits",
    ),
    ServerCase(
        "Mistral, thinking and text as parts",
        reshape_content(lambda text: [{"type": "thinking", "thinking": []}, {"type": "text", "text": text}]),
        ResponseFormat.JSON_SCHEMA,
    ),
    ServerCase(
        "Mistral, alias",
        actions.valid_reply(model="mistral-large-2411"),
        ResponseFormat.JSON_SCHEMA,
        model="mistral-large-latest",
    ),
    ServerCase(
        "DeepSeek, neither schema nor forced tool",
        first_matching(
            (has_response_format("json_schema"), error(400, "This response_format type is unavailable now")),
            (has_response_format("tool"), error(400, "does not support this tool_choice")),
        ),
        ResponseFormat.JSON_OBJECT,
    ),
    ServerCase(
        "xAI, reasoning beside completion_tokens",
        actions.valid_reply(usage={**USAGE, "total_tokens": 1360, **REASONING_USAGE}),
        ResponseFormat.JSON_SCHEMA,
        tokens_out=560,
    ),
    ServerCase(
        "LiteLLM proxy, provider's name before the model's",
        actions.valid_reply(model="gpt-4o-2024-08-06"),
        ResponseFormat.JSON_SCHEMA,
        model="openai/gpt-4o",
    ),
    ServerCase(
        "LiteLLM proxy, parameter that the provider lacks",
        first_matching(
            (has_member("logprobs"), error(400, "UnsupportedParamsError: logprobs", type="None", code="400"))
        ),
        ResponseFormat.JSON_SCHEMA,
    ),
]


async def _run_probe(server: JudgeServer, case: ServerCase) -> ProbeResult:
    async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
        return await probe_judge(client, case.model, case.parameters or {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_preflight_finds_the_response_format_or_the_reason(judge_server: JudgeServer, case: ServerCase) -> None:
    judge_server.behave(first_matching(otherwise=case.action))
    probe = asyncio.run(_run_probe(judge_server, case))
    if isinstance(case.expected, ResponseFormat):
        assert (probe.outcome, probe.response_format) == ("ok", case.expected)
        assert not is_other_model(case.model, probe.last.model_returned)
        assert probe.last.tokens_out == case.tokens_out
    else:
        assert (probe.outcome, probe.response_format) == (case.expected, None)
        assert probe.reason == f"{case.expected}: {case.message}"


@pytest.mark.parametrize(
    ("action", "outcome", "retry_after"),
    [
        (error(429, "Rate limit reached", retry_after="7.66s"), Outcome.RATE_LIMITED, 7.66),  # Groq
        (actions.body({"error": {"code": 429, "message": "slow"}, "choices": None}), Outcome.RATE_LIMITED, None),
        (error(400, "filtered", code="content_filter"), Outcome.FILTERED, None),  # Azure
        (actions.text('{"a', finish_reason="MAX_TOKENS"), Outcome.TRUNCATED, None),
        (actions.text("{}", finish_reason="insufficient_system_resource"), Outcome.SERVER_ERROR, None),  # DeepSeek
        (error(400, "Failed to generate JSON", failed_generation="{"), Outcome.PARSE, None),  # Groq
        (actions.text("{}", finish_reason="pondering"), Outcome.UNKNOWN_ENDING, None),
    ],
)
def test_server_replies_map_to_outcomes(
    judge_server: JudgeServer, action: Action, outcome: Outcome, retry_after: float | None
) -> None:
    request = probe_call("judge-1", {}, ResponseFormat.JSON_SCHEMA)

    async def call_judge() -> tuple[JudgeReply, ParsedReply]:
        async with OpenAIJudge(base_url=judge_server.base_url, allowed_origins=[judge_server.origin]) as client:
            reply = await client.call(request)
            return reply, parse_reply(reply, request.judge_request)

    judge_server.behave(action)
    reply, parsed = asyncio.run(call_judge())
    assert (parsed.outcome, reply.retry_after) == (outcome, retry_after)


# With one of the lengths, the end of the part that is stored cuts the key.
@pytest.mark.parametrize("length", [0, *range(3_930, 3_980, 7)])
def test_key_repeated_by_a_server_is_not_stored(judge_server: JudgeServer, length: int) -> None:
    async def call_judge() -> JudgeReply:
        address = {"base_url": judge_server.base_url, "allowed_origins": [judge_server.origin]}
        async with OpenAIJudge(key="key-0123456789", **address) as client:
            return await client.call(probe_call("judge-1", {}, ResponseFormat.JSON_SCHEMA))

    judge_server.behave(error(401, "." * length + "Incorrect key: key-0123456789."))
    assert "key-0" not in asyncio.run(call_judge()).raw
