"""Expected levels from token probabilities, with real sockets and by hand."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from evaluation.core.samples import Result, Status
from evaluation.judging.calls import JudgeCase, JudgeReply, JudgeRequest, ParsedReply, ResponseFormat, Token
from evaluation.judging.formulas import read_scores
from evaluation.judging.logprobs import expected_level, has_digit_levels, with_logprobs
from evaluation.judging.probing import NO_LOGPROBS, NO_RESPONSE_FORMAT, ProbeResult, probe_judge
from evaluation.judging.prompt import parse_reply
from evaluation.judging.providers.openai import OpenAIJudge, read_tokens
from evaluation.judging.rubric import Label, Level, RubricMetric
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import EN, KO, call, case, make_scores_request
from tests.judge_server import JudgeServer, actions

METRICS = ("correctness",)


def call_with_logprobs(
    server: JudgeServer,
    action: actions.Action,
    response_format: ResponseFormat = ResponseFormat.JSON_SCHEMA,
    **parameters: Any,
) -> ParsedReply:
    """Parsed reply of one call that requests log probabilities."""

    async def send_request() -> JudgeReply:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
            return await client.call(request)

    request = replace(call(metrics=METRICS, rubric=KO, **with_logprobs(parameters)), response_format=response_format)
    server.enqueue(action)
    return parse_reply(asyncio.run(send_request()), request.judge_request, response_format)


def correctness_result(parsed: ParsedReply) -> Result:
    return read_scores(expected_level_case(), parsed)["correctness"]


def expected_level_case() -> JudgeCase:
    return replace(case(metrics=METRICS), expects=True)


@pytest.mark.parametrize("response_format", list(ResponseFormat))
def test_expected_level_is_the_probability_weighted_mean(
    judge_server: JudgeServer, response_format: ResponseFormat
) -> None:
    chances = {"correctness": {"4": 0.60, "5": 0.30, "3": 0.08}}
    correctness = correctness_result(
        call_with_logprobs(
            judge_server, actions.weighted_levels(chances, "세 해라고 답했습니다. 3년이 4번 나옵니다."), response_format
        )
    )
    # 4 x 0.60 + 5 x 0.30 + 3 x 0.08 = 4.14, over 0.98
    assert correctness.value == pytest.approx(4.14 / 0.98, abs=1e-9)
    assert correctness.reason == "세 해라고 답했습니다. 3년이 4번 나옵니다."
    assert (correctness.detail["said"], correctness.detail["mass"], correctness.detail["method"]) == (
        4.0,
        0.98,
        "expected",
    )
    assert correctness.detail["chances"] == {"3": 0.08, "4": 0.6, "5": 0.3}
    # 0.60 x (4 - m)^2 + 0.30 x (5 - m)^2 + 0.08 x (3 - m)^2 over 0.98 with m = 4.2244898
    assert correctness.detail["spread"] == pytest.approx(0.580826, abs=1e-6)
    assert judge_server.requests[-1].body["logprobs"] is True
    assert judge_server.requests[-1].body["top_logprobs"] == 20


def test_top_logprobs_of_the_judge_is_sent(judge_server: JudgeServer) -> None:
    chances = {"correctness": {"2": 0.5, "3": 0.3, "1": 0.15, "4": 0.05}}
    correctness = correctness_result(call_with_logprobs(judge_server, actions.weighted_levels(chances), top_logprobs=2))
    assert judge_server.requests[-1].body["top_logprobs"] == 2
    assert (correctness.status, correctness.reason, correctness.detail["mass"]) == (Status.FAILED, "low_mass", 0.8)
    assert correctness.value is None


@pytest.mark.parametrize(("mass", "status"), [(0.9, Status.SCORED), (0.899999, Status.FAILED)])
def test_at_least_nine_tenths_of_probability_must_be_on_the_scale(mass: float, status: Status) -> None:
    assert expected_level(Result.scored(4), {"4": mass}).status is status


def test_reply_without_probabilities_fails(judge_server: JudgeServer) -> None:
    correctness = correctness_result(
        call_with_logprobs(judge_server, actions.weighted_levels({"correctness": {"4": 1.0}}, logprobs=False))
    )
    assert (correctness.status, correctness.reason, correctness.value) == (Status.FAILED, "no_logprobs", None)
    assert correctness.detail["said"] == 4.0


def test_level_off_the_scale_fails_regardless_of_probabilities(judge_server: JudgeServer) -> None:
    assert (
        correctness_result(
            call_with_logprobs(judge_server, actions.weighted_levels({"correctness": {"7": 0.95}}))
        ).reason
        == "scale"
    )


def test_judge_with_stated_levels_ignores_probabilities(judge_server: JudgeServer) -> None:
    parsed = call_with_logprobs(judge_server, actions.weighted_levels({"correctness": {"4": 0.6, "1": 0.4}}))
    correctness = read_scores(case(metrics=METRICS), parsed)["correctness"]
    assert (correctness.value, dict(correctness.detail)) == (4.0, {})


# By hand: how tokenisers may cut a verdict. Every piece but the named one is sure of itself.

VERDICT = '{"correctness": {"reason": "네 가지", "score": 4}}'


def tokens(pieces: Sequence[str], at: int, chances: Mapping[str, float]) -> tuple[Token, ...]:
    return tuple(Token(p.encode(), p, chances if i == at else {p: 1.0}) for i, p in enumerate(pieces))


def chances_of(raw: str, reply_tokens: tuple[Token, ...], request: JudgeRequest | None = None) -> Mapping[str, float]:
    parsed = parse_reply(
        JudgeReply(Outcome.OK, raw=raw, tokens=reply_tokens), request or make_scores_request(metrics=METRICS)
    )
    assert parsed.outcome is Outcome.OK
    return parsed.chances.get("correctness", {})


@pytest.mark.parametrize(
    ("pieces", "at", "chances"),
    [
        ([VERDICT[:-3], "4", "}}"], 1, {"4": 0.7, "5": 0.3}),
        ([VERDICT[:-4], " 4", "}}"], 1, {" 4": 0.6, "4": 0.1, " 5": 0.3}),  # with the blank before it, or without
        ([VERDICT[:-3], "4}}"], 1, {"4}}": 0.4, "4": 0.3, "5}": 0.2, "5": 0.1}),  # with what closes it
        ([VERDICT[:-6], '": 4', "}}"], 1, {'": 4': 0.7, '": 5': 0.3}),  # with the end of the name
        (["<|start|>", VERDICT[:-3], "4", "}}", "<|end|>"], 2, {"4": 0.7, "5": 0.3}),  # between marks of the model
    ],
)
def test_level_is_found_for_any_tokenization(pieces: list[str], at: int, chances: dict[str, float]) -> None:
    assert chances_of(VERDICT, tokens(pieces, at, chances)) == pytest.approx({"4": 0.7, "5": 0.3})


@pytest.mark.parametrize(
    ("pieces", "at", "chances"),
    [
        ([VERDICT[:-5], ": 4", "}"], 1, {": 4": 1.0}),  # a brace is missing: not the tokens of this text
        ([VERDICT[:-3].replace("네", "�"), "4", "}}"], 1, {"4": 1.0}),  # no bytes of half characters
        ([VERDICT], 0, {VERDICT: 1.0}),  # one token for everything
        ([VERDICT[:-3], "4", "}}"], 1, {"4": 0.7, "5": 0.5}),  # adds up to 1.2
    ],
)
def test_tokens_that_do_not_match_the_text_are_ignored(pieces: list[str], at: int, chances: dict[str, float]) -> None:
    assert chances_of(VERDICT, tokens(pieces, at, chances)) == {}


def test_alternatives_that_are_not_levels_are_ignored() -> None:
    reply_tokens = tokens(
        [VERDICT[:-3], "4", "}}"], 1, {"4": 0.5, "3.5": 0.2, '"4"': 0.1, "45": 0.05, "네": 0.05, "0": 0.04, "6": 0.06}
    )
    assert chances_of(VERDICT, reply_tokens) == {"4": 0.5}


def test_numbers_in_the_reason_are_not_the_score() -> None:
    raw = '{"correctness": {"reason": "\\"score\\": 1, 2, 4", "score": 3}}'
    pieces = [raw[:-3], "3", "}}"]
    assert chances_of(raw, tokens(pieces, 1, {"3": 1.0})) == {"3": 1.0}


def test_stored_probabilities_are_used_again() -> None:
    parsed = parse_reply(
        JudgeReply(Outcome.OK, raw=VERDICT, chances={"correctness": {"4": 0.95}}), make_scores_request(metrics=METRICS)
    )
    assert correctness_result(parsed).detail["mass"] == 0.95


# What is covered.


def metric(*levels: int, scale: str = "", labels: Sequence[str] = ()) -> RubricMetric:
    anchors = tuple(Level(value=level, text="x") for level in levels)
    return RubricMetric(
        name="m",
        question="?",
        scale=scale,
        levels=anchors,
        labels=tuple(Label(label=label, text="x") for label in labels),
    )


@pytest.mark.parametrize(
    ("rubric_metric", "supported"),
    [
        (metric(1, 2, 3, 4, 5), True),
        (metric(0, 1, scale="bool"), True),
        (metric(*range(0, 10)), True),
        (metric(*range(1, 11)), False),  # 10 begins like 1
        (metric(-2, -1, 0, 1, 2), False),  # the sign is a token of its own
        (metric(0, 1, scale="real 0..1"), False),
        (metric(labels=["맞음", "틀림"]), False),
        (metric(labels=["yes", "no"]), False),
    ],
)
def test_only_single_digit_levels_are_supported(rubric_metric: RubricMetric, supported: bool) -> None:
    assert has_digit_levels(rubric_metric) is supported


# What servers may tell.


def logprob_entry(token: Any = "4", logprob: Any = -0.1, **fields: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, **fields}


def test_tokens_are_read_with_their_alternatives_and_bytes() -> None:
    (token,) = read_tokens(
        [logprob_entry("\ufffd", -0.5, bytes=[0xEB, 0x84], top_logprobs=[logprob_entry("네", -1.0)])]
    )
    assert token.data == b"\xeb\x84"
    assert token.chances == pytest.approx({"\ufffd": math.exp(-0.5), "네": math.exp(-1.0)})


@pytest.mark.parametrize(
    "content",
    [
        None,
        "4",
        [],
        [logprob_entry(4)],
        [logprob_entry(logprob="-1")],
        [logprob_entry(logprob=float("nan"))],
        [logprob_entry(logprob=2.0)],
        [logprob_entry(logprob=True)],
        [logprob_entry(top_logprobs=[{"token": "5"}])],
        [logprob_entry(), "5"],
    ],
)
def test_invalid_logprobs_are_ignored(content: Any) -> None:
    assert read_tokens(content) == ()


def test_log_probability_of_minus_infinity_is_0() -> None:
    assert [
        token.chances["4"]
        for token in read_tokens([logprob_entry(logprob=float("-inf")), logprob_entry(logprob=-9999.0)])
    ] == [0, 0]


# The preflight of a judge whose levels are expected.


def run_probe(server: JudgeServer, action: actions.Action) -> ProbeResult:
    async def send_probe() -> ProbeResult:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
            return await probe_judge(client, "judge-1", {}, require_logprobs=True)

    server.behave(action)
    return asyncio.run(send_probe())


@pytest.mark.parametrize(
    ("action", "outcome", "response_format", "calls"),
    [
        (actions.valid_reply(), "ok", ResponseFormat.JSON_SCHEMA, 1),
        (actions.without("json_schema"), "ok", ResponseFormat.TOOL, 2),
        (actions.without("json_schema", "tool", "json_object"), "ok", ResponseFormat.TEXT, 4),
        (actions.valid_reply(logprobs=False), NO_LOGPROBS, None, 4),
        (actions.without("logprobs"), NO_LOGPROBS, None, 5),
        (actions.text("Two of two."), NO_RESPONSE_FORMAT, None, 5),
        (actions.status(401), "unauthorised", None, 2),
    ],
)
def test_preflight_continues_until_a_response_format_returns_logprobs(
    judge_server: JudgeServer, action: actions.Action, outcome: str, response_format: ResponseFormat | None, calls: int
) -> None:
    probe = run_probe(judge_server, action)
    assert (probe.outcome, probe.response_format, judge_server.preflights) == (outcome, response_format, calls)
    assert probe.logprobs is (True if response_format else None)


def test_all_levels_of_both_rubrics_are_single_digits() -> None:
    covered = [has_digit_levels(rubric.metric(name)) for rubric in (EN, KO) for name in rubric.names]
    assert covered == [True] * 6


@pytest.mark.parametrize(("logprob", "chance"), [(0.0, 1.0), (0.01, 1.0), (0.0101, None), (math.log(0.5), 0.5)])
def test_log_probability_slightly_above_0_is_1_and_larger_is_invalid(logprob: float, chance: float | None) -> None:
    tokens = read_tokens([{"token": "4", "logprob": logprob}])
    assert [token.chances["4"] for token in tokens] == ([] if chance is None else [pytest.approx(chance)])


def test_probabilities_are_stored_with_six_digits(judge_server: JudgeServer) -> None:
    chances = {"correctness": {"4": 0.9123456, "5": 0.0123456}}
    correctness = correctness_result(call_with_logprobs(judge_server, actions.weighted_levels(chances)))
    assert correctness.detail["chances"] == {"4": 0.912346, "5": 0.012346}
