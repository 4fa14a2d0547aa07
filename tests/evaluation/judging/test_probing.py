"""The preflight against real sockets finds the working response format in few calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from aiohttp import web

from evaluation.judging.calls import ResponseFormat
from evaluation.judging.probing import NO_RESPONSE_FORMAT, ProbeResult, probe_judge
from evaluation.judging.providers.openai import OpenAIJudge
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines
from tests.judge_server import JudgeServer, actions
from tests.judge_server.received import ReceivedRequest

QUICK = Deadlines(connect=1.0, read=0.5, total=1.0)


def run_probe(server: JudgeServer, action: actions.Action, **parameters: object) -> ProbeResult:
    async def send_probe() -> ProbeResult:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin], deadlines=QUICK) as client:
            return await probe_judge(client, "judge-1", parameters)

    server.behave(action)
    return asyncio.run(send_probe())


def test_fully_capable_judge_is_called_once(judge_server: JudgeServer) -> None:
    probe = run_probe(judge_server, actions.valid_reply(), temperature=0)
    assert (probe.outcome, probe.response_format, probe.logprobs, probe.has_usage) == (
        "ok",
        ResponseFormat.JSON_SCHEMA,
        True,
        True,
    )
    assert (judge_server.preflights, judge_server.calls) == (1, 0)
    assert judge_server.preflight_requests[0].body["temperature"] == 0
    assert probe.last.model_returned == "judge-1"


def test_missing_logprobs_are_reported(judge_server: JudgeServer) -> None:
    assert run_probe(judge_server, actions.valid_reply(logprobs=False)).logprobs is False
    assert judge_server.preflights == 1


def test_missing_usage_is_reported(judge_server: JudgeServer) -> None:
    assert run_probe(judge_server, actions.valid_reply(usage=None)).has_usage is False


@pytest.mark.parametrize(
    ("refused", "response_format", "logprobs", "calls"),
    [
        (["logprobs"], ResponseFormat.JSON_SCHEMA, False, 2),
        (["json_schema"], ResponseFormat.TOOL, True, 4),
        (["json_schema", "logprobs"], ResponseFormat.TOOL, False, 4),
        (["json_schema", "tool"], ResponseFormat.JSON_OBJECT, True, 5),
        (["json_schema", "tool", "json_object"], ResponseFormat.TEXT, True, 6),
    ],
)
def test_refused_response_format_falls_back_to_the_next(
    judge_server: JudgeServer, refused: list[str], response_format: ResponseFormat, logprobs: bool, calls: int
) -> None:
    probe = run_probe(judge_server, actions.without(*refused))
    assert (probe.outcome, probe.response_format, probe.logprobs) == ("ok", response_format, logprobs)
    assert judge_server.preflights == len(probe.probes) == calls


@pytest.mark.parametrize(
    ("ignored", "response_format"),
    [(["json_schema"], ResponseFormat.TOOL), (["json_schema", "tool", "json_object"], ResponseFormat.TEXT)],
)
def test_ignored_response_format_falls_back_to_the_next(
    judge_server: JudgeServer, ignored: list[str], response_format: ResponseFormat
) -> None:
    assert run_probe(judge_server, actions.ignoring(*ignored)).response_format is response_format


def test_judge_without_verdicts_has_no_response_format(judge_server: JudgeServer) -> None:
    probe = run_probe(judge_server, actions.text("Two of two, I would say."))
    assert (probe.outcome, probe.response_format) == (NO_RESPONSE_FORMAT, None)
    assert judge_server.preflights == 4
    assert probe.last.raw == "Two of two, I would say."


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (actions.status(401), Outcome.UNAUTHORISED),
        (actions.status(404, error_code="model_not_found"), Outcome.NOT_FOUND),
        (actions.status(500), Outcome.SERVER_ERROR),
        (actions.hang(), Outcome.TIMEOUT),
    ],
)
def test_server_that_refuses_plain_text_ends_the_preflight_after_two_calls(
    judge_server: JudgeServer, action: actions.Action, outcome: Outcome
) -> None:
    probe = run_probe(judge_server, action)
    assert (probe.outcome, probe.response_format) == (str(outcome), None)
    assert [attempt.response_format for attempt in probe.probes] == [ResponseFormat.JSON_SCHEMA, ResponseFormat.TEXT]
    assert probe.reason.partition(": ")[0] == probe.outcome


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (actions.status(429, error_code="insufficient_quota"), Outcome.NO_CREDIT),
        (actions.status(429, retry_after="300"), Outcome.RATE_LIMITED),
        (actions.status(503, retry_after="30"), Outcome.OVERLOADED),
        (actions.redirect("http://127.0.0.1:9/"), Outcome.REDIRECT),
        (actions.body({"error": {"code": 402, "message": "no credit"}}), Outcome.NO_CREDIT),
    ],
)
def test_server_with_a_blocking_outcome_is_called_once(
    judge_server: JudgeServer, action: actions.Action, outcome: Outcome
) -> None:
    probe = run_probe(judge_server, action)
    assert (probe.outcome, probe.response_format, judge_server.preflights) == (str(outcome), None, 1)


def refuse_if(is_refused: Callable[[ReceivedRequest], bool], code: int) -> actions.Action:
    """A server that returns the status for matching requests and valid replies for others."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        refused = actions.status(code, body='{"error": {"message": "not on this server"}}')
        return await (refused if is_refused(request) else actions.valid_reply())(request, http)

    return act


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 500, 501, 503])
def test_refused_option_is_dropped_for_any_status(judge_server: JudgeServer, code: int) -> None:
    probe = run_probe(judge_server, refuse_if(lambda request: bool(request.body.get("logprobs")), code))
    assert (probe.outcome, probe.response_format, probe.logprobs) == ("ok", ResponseFormat.JSON_SCHEMA, False)
    probe = run_probe(judge_server, refuse_if(lambda request: request.response_format in {"json_schema", "tool"}, code))
    assert (probe.outcome, probe.response_format) == ("ok", ResponseFormat.JSON_OBJECT)
    probe = run_probe(judge_server, refuse_if(lambda request: request.response_format != "text", code))
    assert (probe.outcome, probe.response_format) == ("ok", ResponseFormat.TEXT)
    assert len(probe.probes) <= 6


@pytest.mark.parametrize("score", [85, "2", 0, 3, 1.5, None])
def test_preflight_level_off_the_scale_is_not_a_verdict(judge_server: JudgeServer, score: object) -> None:
    probe = run_probe(judge_server, actions.verdicts(connection_test=score))
    assert (probe.outcome, probe.response_format) == (NO_RESPONSE_FORMAT, None)
    assert f'"score": {json.dumps(score)}' in probe.reason


def test_integral_float_passes_the_preflight(judge_server: JudgeServer) -> None:
    assert run_probe(judge_server, actions.verdicts(connection_test=2.0)).response_format is ResponseFormat.JSON_SCHEMA


def test_reason_contains_the_server_message(judge_server: JudgeServer) -> None:
    error_body = '{"error": {"message": "temperature has to be 1", "code": "unsupported_value"}}'
    probe = run_probe(judge_server, actions.status(400, body=error_body))
    assert probe.reason == "no_rung: HTTP 400 unsupported_value: temperature has to be 1"
    assert run_probe(judge_server, actions.text(None)).reason == "no_rung: HTTP 200: empty text"
    assert (
        run_probe(judge_server, actions.html()).reason
        == "no_rung: HTTP 200 text/html: <html><h1>Bad gateway</h1></html>"
    )
