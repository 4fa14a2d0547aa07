"""One repair attempt end to end: retry policy, repaired request, real socket, parsing."""

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
from tests.evaluation.judging.samples import ALL, EN, call, parse_scores_reply, read_reply
from tests.judge_server import JudgeServer, actions

GOOD = actions.verdicts(correctness=4, faithfulness=4, completeness=4)


async def judge_with_retries(server: JudgeServer) -> dict[str, Result]:
    """Call until the retry policy gives up, and return the results."""
    request: JudgeCall = call(max_completion_tokens=500)
    earlier_outcomes: list[Outcome] = []
    async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as judge:
        while True:
            reply = await judge.call(request)
            results = read_reply(reply, EN, ALL)
            outcome = parse_scores_reply(reply).outcome
            decision = decide(
                outcome, len(earlier_outcomes) + 1, reply.retry_after, random.Random(1), earlier=earlier_outcomes
            )
            if isinstance(decision, GiveUp):
                return results
            assert isinstance(decision, Retry)
            earlier_outcomes.append(outcome)
            request = repair_call(request, outcome)


@pytest.mark.parametrize("fault", ["prose", "two_objects", "truncated"])
def test_reply_without_a_verdict_is_repaired_by_one_request(judge_server: JudgeServer, fault: str) -> None:
    judge_server.enqueue(actions.FAULTS[fault], GOOD)
    assert {r.value for r in asyncio.run(judge_with_retries(judge_server)).values()} == {4.0}
    first_body, second_body = (request.body for request in judge_server.requests)
    if fault == "truncated":
        assert (first_body["max_completion_tokens"], second_body["max_completion_tokens"]) == (500, 1000)
        assert second_body["messages"] == first_body["messages"]
    else:
        assert second_body["messages"][:2] == first_body["messages"]
        assert [message["role"] for message in second_body["messages"][2:]] == ["assistant", "user"]
        assert second_body["messages"][-1]["content"] == EN.repair.strip()


@pytest.mark.parametrize(("fault", "reason"), [("prose", "parse"), ("truncated", "truncated")])
def test_failed_repair_ends_after_two_requests(judge_server: JudgeServer, fault: str, reason: str) -> None:
    judge_server.otherwise = actions.FAULTS[fault]
    results = asyncio.run(judge_with_retries(judge_server))
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, reason)}
    assert judge_server.calls == 2


def test_verdict_off_the_scale_is_not_repaired(judge_server: JudgeServer) -> None:
    judge_server.enqueue(actions.verdicts(correctness=7, faithfulness=4, completeness=4))
    results = asyncio.run(judge_with_retries(judge_server))
    assert results["correctness"].reason == "scale"
    assert results["faithfulness"].value == 4.0
    assert judge_server.calls == 1
