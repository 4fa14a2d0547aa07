"""Servers that speak OpenAI's format, each with the ways of replying that are known of it: the rows of the table in
``docs/judges.md``. Every one is a script of the judge server on a real socket."""

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
from tests.judge_server.received import Received

Refuses = Callable[[Received], bool]


def error(status: int, message: str, *, retry_after: str | None = None, **members: Any) -> Action:
    """An error in OpenAI's form."""
    return actions.status(status, body=json.dumps({"error": {"message": message, **members}}), retry_after=retry_after)


def refusing(*rules: tuple[Refuses, Action], then: Action | None = None) -> Action:
    """The first action whose rule fits the request, else a good reply."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        action = next((action for fits, action in rules if fits(request)), then or actions.fitting())
        return await action(request, http)

    return act


def content(shape: Callable[[str], Any], **changes: Any) -> Action:
    """A good verdict whose message's content has this shape."""

    async def act(request: Received, _: web.Request) -> web.StreamResponse:
        body = completion(request, answer(request), as_asked=True, **changes)
        message = body["choices"][0]["message"]
        if message["content"] is not None:
            message["content"] = shape(message["content"])
        return web.json_response(body)

    return act


def has(member: str) -> Refuses:
    return lambda request: member in request.body


def on(*rungs: str) -> Refuses:
    return lambda request: request.rung in rungs


USAGE = {"prompt_tokens": 800, "completion_tokens": 60, "total_tokens": 860}
THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 500}}


@dataclass(frozen=True, slots=True)
class Case:
    """A server's way of replying, and what the preflight finds: the rung, or why there is none."""

    name: str
    action: Action
    rung: ResponseFormat | str
    parameters: Mapping[str, Any] | None = None
    tokens_out: int | None = 60
    words: str = ""
    model: str = "judge-1"


CASES = [
    Case("OpenAI", actions.fitting(), ResponseFormat.JSON_SCHEMA),
    Case(
        "OpenAI, reasoning model without extras",
        refusing((has("logprobs"), error(403, "You are not allowed to request logprobs from this model"))),
        ResponseFormat.JSON_SCHEMA,
    ),
    Case(
        "OpenAI, reasoning model with max_tokens",
        refusing((has("max_tokens"), error(400, "Use 'max_completion_tokens' instead.", code="unsupported_parameter"))),
        "no_rung",
        {"max_tokens": 300},
        words="HTTP 400 unsupported_parameter: Use 'max_completion_tokens' instead.",
    ),
    Case(
        "OpenAI, reasoning inside completion_tokens",
        actions.fitting(usage={"prompt_tokens": 800, "completion_tokens": 560, "total_tokens": 1360, **THOUGHT}),
        ResponseFormat.JSON_SCHEMA,
        tokens_out=560,
    ),
    Case(
        "Azure, deployment unknown",
        error(404, "The API deployment for this resource does not exist.", code="DeploymentNotFound"),
        "not_found",
        words="HTTP 404 deploymentnotfound: The API deployment for this resource does not exist.",
    ),
    Case("vLLM", actions.fitting(), ResponseFormat.JSON_SCHEMA),
    Case(
        "vLLM, template that wants roles to alternate",
        refusing(
            (
                lambda request: [m["role"] for m in request.body["messages"]].count("user") > 1,
                error(
                    400, "Conversation roles must alternate user/assistant/user/assistant/...", type="BadRequestError"
                ),
            )
        ),
        ResponseFormat.JSON_SCHEMA,
    ),
    Case(
        "vLLM, model at a path",
        actions.fitting(model="/models/Qwen3-8B"),
        ResponseFormat.JSON_SCHEMA,
        model="Qwen/Qwen3-8B",
    ),
    Case("vLLM, everything in the reasoning", actions.text(None), "no_rung", words="HTTP 200: empty text"),
    Case(
        "SGLang, no log probabilities",
        refusing(
            (
                has("logprobs"),
                actions.status(500, body='{"object": "error", "message": "list index", "type": "InternalServerError"}'),
            )
        ),
        ResponseFormat.JSON_SCHEMA,
    ),
    Case(
        "SGLang, stop token as finish reason",
        actions.fitting(finish_reason="stop_token"),
        ResponseFormat.JSON_SCHEMA,
    ),
    Case("Ollama, tag", actions.fitting(model="llama3.1:latest"), ResponseFormat.JSON_SCHEMA, model="llama3.1"),
    Case("Ollama, code fence", content(lambda text: f"```json\n{text}\n```"), ResponseFormat.JSON_SCHEMA),
    Case(
        "Ollama, model not pulled",
        actions.status(404, body='{"error": {"message": "model \\"x\\" not found, try pulling it first"}}'),
        "not_found",
        words='HTTP 404: model "x" not found, try pulling it first',
    ),
    Case(
        "LM Studio, no tool choice by name and no json_object",
        refusing(
            (on("json_schema", "tool"), error(400, "not supported by this model")),
            (
                on("json_object"),
                actions.status(400, body='{"error": "response_format.type must be json_schema or text"}'),
            ),
        ),
        ResponseFormat.TEXT,
    ),
    Case(
        "LM Studio, an error text inside a 200",
        actions.body({"error": "Unexpected endpoint or method."}),
        "server_error",
        words="HTTP 200: Unexpected endpoint or method.",
    ),
    Case(
        "Groq, no JSON written",
        refusing((on("json_schema", "tool"), error(400, "Failed to validate JSON.", code="json_validate_failed"))),
        ResponseFormat.JSON_OBJECT,
    ),
    Case(
        "OpenRouter, parameters that no provider supports",
        refusing((has("logprobs"), error(404, "No endpoints found that support the requested parameters", code=404))),
        ResponseFormat.JSON_SCHEMA,
    ),
    Case(
        "OpenRouter, credit used up inside a 200",
        actions.body({"error": {"message": "Insufficient credits", "code": 402}}),
        "no_credit",
        words="HTTP 200 402: Insufficient credits",
    ),
    Case(
        "Mistral, thinking and text as parts",
        content(lambda text: [{"type": "thinking", "thinking": []}, {"type": "text", "text": text}]),
        ResponseFormat.JSON_SCHEMA,
    ),
    Case(
        "Mistral, alias",
        actions.fitting(model="mistral-large-2411"),
        ResponseFormat.JSON_SCHEMA,
        model="mistral-large-latest",
    ),
    Case(
        "DeepSeek, neither schema nor forced tool",
        refusing(
            (on("json_schema"), error(400, "This response_format type is unavailable now")),
            (on("tool"), error(400, "does not support this tool_choice")),
        ),
        ResponseFormat.JSON_OBJECT,
    ),
    Case(
        "xAI, reasoning beside completion_tokens",
        actions.fitting(usage={**USAGE, "total_tokens": 1360, **THOUGHT}),
        ResponseFormat.JSON_SCHEMA,
        tokens_out=560,
    ),
    Case(
        "LiteLLM proxy, provider's name before the model's",
        actions.fitting(model="gpt-4o-2024-08-06"),
        ResponseFormat.JSON_SCHEMA,
        model="openai/gpt-4o",
    ),
    Case(
        "LiteLLM proxy, parameter that the provider lacks",
        refusing((has("logprobs"), error(400, "UnsupportedParamsError: logprobs", type="None", code="400"))),
        ResponseFormat.JSON_SCHEMA,
    ),
]


async def _probed(server: JudgeServer, case: Case) -> ProbeResult:
    async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
        return await probe_judge(client, case.model, case.parameters or {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_judge_at_the_server_works_or_says_why_not(judge_server: JudgeServer, case: Case) -> None:
    judge_server.behave(refusing(then=case.action))
    found = asyncio.run(_probed(judge_server, case))
    if isinstance(case.rung, ResponseFormat):
        assert (found.outcome, found.response_format) == ("ok", case.rung)
        assert not is_other_model(case.model, found.last.model_returned)
        assert found.last.tokens_out == case.tokens_out
    else:
        assert (found.outcome, found.response_format) == (case.rung, None)
        assert found.reason == f"{case.rung}: {case.words}"


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
def test_one_reply_of_a_server_is_what_it_stands_for(
    judge_server: JudgeServer, action: Action, outcome: Outcome, retry_after: float | None
) -> None:
    request = probe_call("judge-1", {}, ResponseFormat.JSON_SCHEMA)

    async def called() -> tuple[JudgeReply, ParsedReply]:
        async with OpenAIJudge(base_url=judge_server.base_url, allowed_origins=[judge_server.origin]) as client:
            reply = await client.call(request)
            return reply, parse_reply(reply, request.judge_request)

    judge_server.behave(action)
    reply, heard = asyncio.run(called())
    assert (heard.outcome, reply.retry_after) == (outcome, retry_after)


def test_a_key_that_a_server_repeats_is_not_kept(judge_server: JudgeServer) -> None:
    async def called() -> JudgeReply:
        at = {"base_url": judge_server.base_url, "allowed_origins": [judge_server.origin]}
        async with OpenAIJudge(key="key-0123456789", **at) as client:
            return await client.call(probe_call("judge-1", {}, ResponseFormat.JSON_SCHEMA))

    judge_server.behave(error(401, "Incorrect key: key-0123456789."))
    assert "0123456789" not in asyncio.run(called()).raw
