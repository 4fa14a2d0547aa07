"""Expected levels: read from token probabilities over real sockets and by hand, refused where they cannot be told."""

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
from tests.evaluation.judging.samples import EN, KO, call, case, scoring
from tests.judge_server import JudgeServer, actions

ONE = ("correctness",)


def asked(
    server: JudgeServer, action: actions.Action, rung: ResponseFormat = ResponseFormat.JSON_SCHEMA, **parameters: Any
) -> ParsedReply:
    """What is heard of one call that asks for log probabilities."""

    async def answered() -> JudgeReply:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
            return await client.call(request)

    request = replace(call(metrics=ONE, rubric=KO, **with_logprobs(parameters)), response_format=rung)
    server.enqueue(action)
    return parse_reply(asyncio.run(answered()), request.judge_request, rung)


def result(heard: ParsedReply) -> Result:
    return read_scores(expecting(), heard)["correctness"]


def expecting() -> JudgeCase:
    return replace(case(metrics=ONE), expects=True)


@pytest.mark.parametrize("rung", list(ResponseFormat))
def test_the_expected_level_is_the_mean_of_the_levels_by_their_probabilities(
    judge_server: JudgeServer, rung: ResponseFormat
) -> None:
    chances = {"correctness": {"4": 0.60, "5": 0.30, "3": 0.08}}
    found = result(asked(judge_server, actions.weighing(chances, "세 해라고 답했습니다. 3년이 4번 나옵니다."), rung))
    # 4 x 0.60 + 5 x 0.30 + 3 x 0.08 = 4.14, over 0.98
    assert found.value == pytest.approx(4.14 / 0.98, abs=1e-9)
    assert found.reason == "세 해라고 답했습니다. 3년이 4번 나옵니다."
    assert (found.detail["said"], found.detail["mass"], found.detail["method"]) == (4.0, 0.98, "expected")
    assert found.detail["chances"] == {"3": 0.08, "4": 0.6, "5": 0.3}
    # 0.60 x (4 - m)^2 + 0.30 x (5 - m)^2 + 0.08 x (3 - m)^2 over 0.98 with m = 4.2244898
    assert found.detail["spread"] == pytest.approx(0.580826, abs=1e-6)
    assert judge_server.requests[-1].body["logprobs"] is True
    assert judge_server.requests[-1].body["top_logprobs"] == 20


def test_a_server_that_tells_fewer_alternatives_is_asked_for_as_many(judge_server: JudgeServer) -> None:
    chances = {"correctness": {"2": 0.5, "3": 0.3, "1": 0.15, "4": 0.05}}
    found = result(asked(judge_server, actions.weighing(chances), top_logprobs=2))
    assert judge_server.requests[-1].body["top_logprobs"] == 2
    assert (found.status, found.reason, found.detail["mass"]) == (Status.FAILED, "low_mass", 0.8)
    assert found.value is None


@pytest.mark.parametrize(("mass", "status"), [(0.9, Status.SCORED), (0.899999, Status.FAILED)])
def test_nine_tenths_of_the_probability_have_to_lie_on_the_scale(mass: float, status: Status) -> None:
    assert expected_level(Result.scored(4), {"4": mass}).status is status


def test_a_reply_without_probabilities_is_a_failure_and_never_the_level_it_says(judge_server: JudgeServer) -> None:
    found = result(asked(judge_server, actions.weighing({"correctness": {"4": 1.0}}, logprobs=False)))
    assert (found.status, found.reason, found.value) == (Status.FAILED, "no_logprobs", None)
    assert found.detail["said"] == 4.0


def test_a_level_off_the_scale_fails_by_scale_whatever_its_probabilities(judge_server: JudgeServer) -> None:
    assert result(asked(judge_server, actions.weighing({"correctness": {"7": 0.95}}))).reason == "scale"


def test_a_judge_that_takes_levels_as_said_does_not_look_at_them(judge_server: JudgeServer) -> None:
    heard = asked(judge_server, actions.weighing({"correctness": {"4": 0.6, "1": 0.4}}))
    said = read_scores(case(metrics=ONE), heard)["correctness"]
    assert (said.value, dict(said.detail)) == (4.0, {})


# By hand: how tokenisers may cut a verdict. Every piece but the named one is sure of itself.

VERDICT = '{"correctness": {"reason": "네 가지", "score": 4}}'


def tokens(pieces: Sequence[str], at: int, chances: Mapping[str, float]) -> tuple[Token, ...]:
    return tuple(Token(p.encode(), p, chances if i == at else {p: 1.0}) for i, p in enumerate(pieces))


def chances_of(raw: str, told: tuple[Token, ...], ask: JudgeRequest | None = None) -> Mapping[str, float]:
    heard = parse_reply(JudgeReply(Outcome.OK, raw=raw, tokens=told), ask or scoring(metrics=ONE))
    assert heard.outcome is Outcome.OK
    return heard.chances.get("correctness", {})


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
def test_a_level_is_found_however_the_text_is_cut(pieces: list[str], at: int, chances: dict[str, float]) -> None:
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
def test_tokens_that_do_not_fit_the_text_tell_nothing(pieces: list[str], at: int, chances: dict[str, float]) -> None:
    assert chances_of(VERDICT, tokens(pieces, at, chances)) == {}


def test_alternatives_that_are_no_level_cover_nothing() -> None:
    told = tokens(
        [VERDICT[:-3], "4", "}}"], 1, {"4": 0.5, "3.5": 0.2, '"4"': 0.1, "45": 0.05, "네": 0.05, "0": 0.04, "6": 0.06}
    )
    assert chances_of(VERDICT, told) == {"4": 0.5}


def test_numbers_in_the_reason_are_not_the_score() -> None:
    raw = '{"correctness": {"reason": "\\"score\\": 1, 2, 4", "score": 3}}'
    pieces = [raw[:-3], "3", "}}"]
    assert chances_of(raw, tokens(pieces, 1, {"3": 1.0})) == {"3": 1.0}


def test_the_ledger_gives_back_what_was_read() -> None:
    heard = parse_reply(JudgeReply(Outcome.OK, raw=VERDICT, chances={"correctness": {"4": 0.95}}), scoring(metrics=ONE))
    assert result(heard).detail["mass"] == 0.95


# What is covered.


def metric(*levels: int, scale: str = "", labels: Sequence[str] = ()) -> RubricMetric:
    anchors = tuple(Level(value=level, text="x") for level in levels)
    return RubricMetric(
        name="m", question="?", scale=scale, levels=anchors, labels=tuple(Label(label=one, text="x") for one in labels)
    )


@pytest.mark.parametrize(
    ("asks", "covered"),
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
def test_only_levels_of_one_digit_are_covered(asks: RubricMetric, covered: bool) -> None:
    assert has_digit_levels(asks) is covered


# What servers may tell.


def told(token: Any = "4", logprob: Any = -0.1, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, **more}


def test_tokens_are_read_with_their_alternatives_and_bytes() -> None:
    (token,) = read_tokens([told("\ufffd", -0.5, bytes=[0xEB, 0x84], top_logprobs=[told("네", -1.0)])])
    assert token.data == b"\xeb\x84"
    assert token.chances == pytest.approx({"\ufffd": math.exp(-0.5), "네": math.exp(-1.0)})


@pytest.mark.parametrize(
    "content",
    [
        None,
        "4",
        [],
        [told(4)],
        [told(logprob="-1")],
        [told(logprob=float("nan"))],
        [told(logprob=2.0)],
        [told(logprob=True)],
        [told(top_logprobs=[{"token": "5"}])],
        [told(), "5"],
    ],
)
def test_nonsense_is_no_token(content: Any) -> None:
    assert read_tokens(content) == ()


def test_the_least_likely_is_not_nonsense() -> None:
    assert [token.chances["4"] for token in read_tokens([told(logprob=float("-inf")), told(logprob=-9999.0)])] == [0, 0]


# The preflight of a judge whose levels are expected.


def probed(server: JudgeServer, action: actions.Action) -> ProbeResult:
    async def asked() -> ProbeResult:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
            return await probe_judge(client, "judge-1", {}, require_logprobs=True)

    server.behave(action)
    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("action", "outcome", "rung", "calls"),
    [
        (actions.fitting(), "ok", ResponseFormat.JSON_SCHEMA, 1),
        (actions.without("json_schema"), "ok", ResponseFormat.TOOL, 2),
        (actions.without("json_schema", "tool", "json_object"), "ok", ResponseFormat.TEXT, 4),
        (actions.fitting(logprobs=False), NO_LOGPROBS, None, 4),
        (actions.without("logprobs"), NO_LOGPROBS, None, 5),
        (actions.text("Two of two."), NO_RESPONSE_FORMAT, None, 5),
        (actions.status(401), "unauthorised", None, 2),
    ],
)
def test_the_preflight_goes_on_until_a_rung_tells_the_probabilities(
    judge_server: JudgeServer, action: actions.Action, outcome: str, rung: ResponseFormat | None, calls: int
) -> None:
    found = probed(judge_server, action)
    assert (found.outcome, found.response_format, judge_server.preflights) == (outcome, rung, calls)
    assert found.logprobs is (True if rung else None)


def test_the_english_rubric_is_read_like_the_korean_one() -> None:
    covered = [has_digit_levels(rubric.metric(name)) for rubric in (EN, KO) for name in rubric.names]
    assert covered == [True] * 6


@pytest.mark.parametrize(("logprob", "chance"), [(0.0, 1.0), (0.01, 1.0), (0.0101, None), (math.log(0.5), 0.5)])
def test_a_logarithm_a_little_above_that_of_1_is_1_and_beyond_it_makes_no_sense(
    logprob: float, chance: float | None
) -> None:
    tokens = read_tokens([{"token": "4", "logprob": logprob}])
    assert [token.chances["4"] for token in tokens] == ([] if chance is None else [pytest.approx(chance)])


def test_probabilities_are_kept_with_six_digits(judge_server: JudgeServer) -> None:
    chances = {"correctness": {"4": 0.9123456, "5": 0.0123456}}
    found = result(asked(judge_server, actions.weighing(chances)))
    assert found.detail["chances"] == {"4": 0.912346, "5": 0.012346}
