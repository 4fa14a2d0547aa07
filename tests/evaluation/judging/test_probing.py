"""The preflight against real sockets: which way of asking works is found by trying, in as few calls as possible."""

from __future__ import annotations

import asyncio

import pytest

from evaluation.judging.calls import Rung
from evaluation.judging.client import OpenAIJudge
from evaluation.judging.probing import NO_RUNG, Probed, probe
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines
from tests.judge_server import JudgeServer, actions

QUICK = Deadlines(connect=1.0, read=0.5, total=1.0)


def probed(server: JudgeServer, action: actions.Action, **parameters: object) -> Probed:
    async def asked() -> Probed:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin], deadlines=QUICK) as client:
            return await probe(client, "judge-1", parameters)

    server.behave(action)
    return asyncio.run(asked())


def test_a_judge_that_can_do_everything_is_asked_once(judge_server: JudgeServer) -> None:
    found = probed(judge_server, actions.fitting(), temperature=0)
    assert (found.outcome, found.rung, found.logprobs, found.tells_usage) == ("ok", Rung.JSON_SCHEMA, True, True)
    assert (judge_server.preflights, judge_server.calls) == (1, 0)
    assert judge_server.preflight_requests[0].body["temperature"] == 0
    assert found.last.model_returned == "judge-1"


def test_log_probabilities_that_do_not_come_back_are_told(judge_server: JudgeServer) -> None:
    assert probed(judge_server, actions.fitting(logprobs=False)).logprobs is False
    assert judge_server.preflights == 1


def test_usage_that_is_missing_is_told(judge_server: JudgeServer) -> None:
    assert probed(judge_server, actions.fitting(usage=None)).tells_usage is False


@pytest.mark.parametrize(
    ("refused", "rung", "logprobs", "calls"),
    [
        (["logprobs"], Rung.JSON_SCHEMA, False, 2),
        (["json_schema"], Rung.TOOL, True, 4),
        (["json_schema", "logprobs"], Rung.TOOL, False, 4),
        (["json_schema", "tool"], Rung.JSON_OBJECT, True, 5),
        (["json_schema", "tool", "json_object"], Rung.TEXT, True, 6),
    ],
)
def test_c5_a_refused_way_of_asking_drops_one_rung(
    judge_server: JudgeServer, refused: list[str], rung: Rung, logprobs: bool, calls: int
) -> None:
    found = probed(judge_server, actions.without(*refused))
    assert (found.outcome, found.rung, found.logprobs) == ("ok", rung, logprobs)
    assert judge_server.preflights == len(found.probes) == calls


@pytest.mark.parametrize(
    ("ignored", "rung"), [(["json_schema"], Rung.TOOL), (["json_schema", "tool", "json_object"], Rung.TEXT)]
)
def test_a_promise_that_is_not_kept_drops_a_rung_too(judge_server: JudgeServer, ignored: list[str], rung: Rung) -> None:
    assert probed(judge_server, actions.ignoring(*ignored)).rung is rung


def test_a_judge_that_never_gives_a_verdict_has_no_rung(judge_server: JudgeServer) -> None:
    found = probed(judge_server, actions.text("Two of two, I would say."))
    assert (found.outcome, found.rung) == (NO_RUNG, None)
    assert judge_server.preflights == 4
    assert found.last.raw == "Two of two, I would say."


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (actions.status(401), Outcome.UNAUTHORISED),
        (actions.status(404, error_code="model_not_found"), Outcome.NOT_FOUND),
        (actions.status(429, error_code="insufficient_quota"), Outcome.NO_CREDIT),
        (actions.status(429, retry_after="300"), Outcome.RATE_LIMITED),
        (actions.hang(), Outcome.TIMEOUT),
    ],
)
def test_c4_a_fault_that_no_rung_cures_ends_the_preflight_after_one_call(
    judge_server: JudgeServer, action: actions.Action, outcome: Outcome
) -> None:
    found = probed(judge_server, action)
    assert (found.outcome, found.rung) == (str(outcome), None)
    assert judge_server.preflights == 1
