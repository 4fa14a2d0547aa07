"""One repair try from end to end: policy, repaired request, real socket, reading."""

from __future__ import annotations

import asyncio
import random

import pytest

from evaluation.core.samples import Result, Status
from evaluation.judging.calls import JudgeCall
from evaluation.judging.prompt import repair_call
from evaluation.judging.providers.openai import OpenAIJudge
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import GiveUp, Retry, decide
from tests.evaluation.judging.samples import ALL, EN, call, heard, read_reply
from tests.judge_server import JudgeServer, actions

GOOD = actions.verdicts(correctness=4, faithfulness=4, completeness=4)


async def judged(server: JudgeServer) -> dict[str, Result]:
    """The results of one unit: calls until the policy gives up, each written down in ``earlier``."""
    request: JudgeCall = call(max_completion_tokens=500)
    earlier: list[Outcome] = []
    async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as judge:
        while True:
            reply = await judge.call(request)
            results = read_reply(reply, EN, ALL)
            outcome = heard(reply).outcome
            decision = decide(outcome, len(earlier) + 1, reply.retry_after, random.Random(1), earlier=earlier)
            if isinstance(decision, GiveUp):
                return results
            assert isinstance(decision, Retry)
            earlier.append(outcome)
            request = repair_call(request, outcome)


@pytest.mark.parametrize("fault", ["prose", "two_objects", "truncated"])
def test_j1_a_reply_without_a_verdict_is_repaired_by_one_more_request(judge_server: JudgeServer, fault: str) -> None:
    judge_server.enqueue(actions.FAULTS[fault], GOOD)
    assert {r.value for r in asyncio.run(judged(judge_server)).values()} == {4.0}
    first, second = (request.body for request in judge_server.requests)
    if fault == "truncated":
        assert (first["max_completion_tokens"], second["max_completion_tokens"]) == (500, 1000)
        assert second["messages"] == first["messages"]
    else:
        assert second["messages"][:2] == first["messages"]
        assert [message["role"] for message in second["messages"][2:]] == ["assistant", "user"]
        assert second["messages"][-1]["content"] == EN.repair.strip()


@pytest.mark.parametrize(("fault", "reason"), [("prose", "parse"), ("truncated", "truncated")])
def test_j1_a_judge_that_does_it_again_fails_after_two_requests(
    judge_server: JudgeServer, fault: str, reason: str
) -> None:
    judge_server.otherwise = actions.FAULTS[fault]
    results = asyncio.run(judged(judge_server))
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, reason)}
    assert judge_server.calls == 2


def test_a_verdict_off_the_scale_is_not_asked_for_again(judge_server: JudgeServer) -> None:
    judge_server.enqueue(actions.verdicts(correctness=7, faithfulness=4, completeness=4))
    results = asyncio.run(judged(judge_server))
    assert results["correctness"].reason == "scale"
    assert results["faithfulness"].value == 4.0
    assert judge_server.calls == 1
