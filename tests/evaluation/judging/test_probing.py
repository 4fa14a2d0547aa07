"""The preflight against real sockets: which way of asking works is found by trying, in as few calls as possible."""

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
from tests.judge_server.received import Received

QUICK = Deadlines(connect=1.0, read=0.5, total=1.0)


def probed(server: JudgeServer, action: actions.Action, **parameters: object) -> ProbeResult:
    async def asked() -> ProbeResult:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin], deadlines=QUICK) as client:
            return await probe_judge(client, "judge-1", parameters)

    server.behave(action)
    return asyncio.run(asked())


def test_a_judge_that_can_do_everything_is_asked_once(judge_server: JudgeServer) -> None:
    found = probed(judge_server, actions.fitting(), temperature=0)
    assert (found.outcome, found.response_format, found.logprobs, found.has_usage) == (
        "ok",
        ResponseFormat.JSON_SCHEMA,
        True,
        True,
    )
    assert (judge_server.preflights, judge_server.calls) == (1, 0)
    assert judge_server.preflight_requests[0].body["temperature"] == 0
    assert found.last.model_returned == "judge-1"


def test_log_probabilities_that_do_not_come_back_are_told(judge_server: JudgeServer) -> None:
    assert probed(judge_server, actions.fitting(logprobs=False)).logprobs is False
    assert judge_server.preflights == 1


def test_usage_that_is_missing_is_told(judge_server: JudgeServer) -> None:
    assert probed(judge_server, actions.fitting(usage=None)).has_usage is False


@pytest.mark.parametrize(
    ("refused", "rung", "logprobs", "calls"),
    [
        (["logprobs"], ResponseFormat.JSON_SCHEMA, False, 2),
        (["json_schema"], ResponseFormat.TOOL, True, 4),
        (["json_schema", "logprobs"], ResponseFormat.TOOL, False, 4),
        (["json_schema", "tool"], ResponseFormat.JSON_OBJECT, True, 5),
        (["json_schema", "tool", "json_object"], ResponseFormat.TEXT, True, 6),
    ],
)
def test_c5_a_refused_way_of_asking_drops_one_rung(
    judge_server: JudgeServer, refused: list[str], rung: ResponseFormat, logprobs: bool, calls: int
) -> None:
    found = probed(judge_server, actions.without(*refused))
    assert (found.outcome, found.response_format, found.logprobs) == ("ok", rung, logprobs)
    assert judge_server.preflights == len(found.probes) == calls


@pytest.mark.parametrize(
    ("ignored", "rung"),
    [(["json_schema"], ResponseFormat.TOOL), (["json_schema", "tool", "json_object"], ResponseFormat.TEXT)],
)
def test_a_promise_that_is_not_kept_drops_a_rung_too(
    judge_server: JudgeServer, ignored: list[str], rung: ResponseFormat
) -> None:
    assert probed(judge_server, actions.ignoring(*ignored)).response_format is rung


def test_a_judge_that_never_gives_a_verdict_has_no_rung(judge_server: JudgeServer) -> None:
    found = probed(judge_server, actions.text("Two of two, I would say."))
    assert (found.outcome, found.response_format) == (NO_RESPONSE_FORMAT, None)
    assert judge_server.preflights == 4
    assert found.last.raw == "Two of two, I would say."


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (actions.status(401), Outcome.UNAUTHORISED),
        (actions.status(404, error_code="model_not_found"), Outcome.NOT_FOUND),
        (actions.status(500), Outcome.SERVER_ERROR),
        (actions.hang(), Outcome.TIMEOUT),
    ],
)
def test_c4_a_server_that_refuses_the_plainest_request_ends_the_preflight_after_two_calls(
    judge_server: JudgeServer, action: actions.Action, outcome: Outcome
) -> None:
    found = probed(judge_server, action)
    assert (found.outcome, found.response_format) == (str(outcome), None)
    assert [one.response_format for one in found.probes] == [ResponseFormat.JSON_SCHEMA, ResponseFormat.TEXT]
    assert found.reason.partition(": ")[0] == found.outcome


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
def test_a_server_that_wants_to_be_left_alone_is_asked_once(
    judge_server: JudgeServer, action: actions.Action, outcome: Outcome
) -> None:
    found = probed(judge_server, action)
    assert (found.outcome, found.response_format, judge_server.preflights) == (str(outcome), None, 1)


def refusing(fits: Callable[[Received], bool], code: int) -> actions.Action:
    """A server that answers with the status to requests that fit, and well to the others."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        refused = actions.status(code, body='{"error": {"message": "not on this server"}}')
        return await (refused if fits(request) else actions.fitting())(request, http)

    return act


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 500, 501, 503])
def test_an_extra_that_is_refused_by_any_status_is_left_out(judge_server: JudgeServer, code: int) -> None:
    found = probed(judge_server, refusing(lambda request: bool(request.body.get("logprobs")), code))
    assert (found.outcome, found.response_format, found.logprobs) == ("ok", ResponseFormat.JSON_SCHEMA, False)
    found = probed(judge_server, refusing(lambda request: request.rung in {"json_schema", "tool"}, code))
    assert (found.outcome, found.response_format) == ("ok", ResponseFormat.JSON_OBJECT)
    found = probed(judge_server, refusing(lambda request: request.rung != "text", code))
    assert (found.outcome, found.response_format) == ("ok", ResponseFormat.TEXT)
    assert len(found.probes) <= 6


@pytest.mark.parametrize("score", [85, "2", 0, 3, 1.5, None])
def test_a_level_off_the_scale_of_the_preflight_is_no_verdict(judge_server: JudgeServer, score: object) -> None:
    found = probed(judge_server, actions.verdicts(connection_test=score))
    assert (found.outcome, found.response_format) == (NO_RESPONSE_FORMAT, None)
    assert f'"score": {json.dumps(score)}' in found.reason


def test_a_whole_real_passes_the_preflight(judge_server: JudgeServer) -> None:
    assert probed(judge_server, actions.verdicts(connection_test=2.0)).response_format is ResponseFormat.JSON_SCHEMA


def test_the_reason_holds_what_the_server_said(judge_server: JudgeServer) -> None:
    refused = '{"error": {"message": "temperature has to be 1", "code": "unsupported_value"}}'
    found = probed(judge_server, actions.status(400, body=refused))
    assert found.reason == "no_rung: HTTP 400 unsupported_value: temperature has to be 1"
    assert probed(judge_server, actions.text(None)).reason == "no_rung: HTTP 200: empty text"
    assert (
        probed(judge_server, actions.html()).reason == "no_rung: HTTP 200 text/html: <html><h1>Bad gateway</h1></html>"
    )
