from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluation.core.samples import Result, Status
from evaluation.judging.calls import JudgeReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import ALL, EN, ok_reply, parse_scores_reply, read_reply


def read_results(raw: str, metrics: tuple[str, ...] = ALL) -> dict[str, Result]:
    return read_reply(ok_reply(raw), EN, metrics)


def reply_with(score_json: str) -> str:
    good = '{"reason": "r", "score": 2}'
    scored = f'{{"reason": "why", "score": {score_json}}}'
    return f'{{"correctness": {scored}, "faithfulness": {good}, "completeness": {good}}}'


def test_valid_reply_yields_score_and_reason_for_each_metric() -> None:
    results = read_results(reply_with("4"))
    assert {name: (r.value, r.reason) for name, r in results.items()} == {
        "correctness": (4.0, "why"),
        "faithfulness": (2.0, "r"),
        "completeness": (2.0, "r"),
    }


@pytest.mark.parametrize(
    "score",
    [
        "7",
        "0",
        "-1",
        '"4"',
        "4.7",
        "4.0000001",
        "7.0",
        "true",
        "null",
        "NaN",
        "Infinity",
        "1e400",
        "[4]",
        '{"v": 4}',
        "9" * 5000,
    ],
)
def test_score_off_the_scale_fails_only_its_metric(score: str) -> None:
    results = read_results(reply_with(score))
    assert (results["correctness"].status, results["correctness"].reason) == (Status.FAILED, "scale")
    assert results["correctness"].detail["reason"] == "why"  # what the judge said of it is kept
    assert results["correctness"].value is None
    assert results["faithfulness"].value == results["completeness"].value == 2.0
    assert parse_scores_reply(ok_reply(reply_with(score))).outcome is Outcome.OK


GOOD = reply_with("4")


@pytest.mark.parametrize("score", ["4.0", "4.00", "4e0", "40e-1"])
def test_integral_float_is_a_level(score: str) -> None:
    assert read_results(reply_with(score))["correctness"].value == 4.0


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "The answer deserves a 4.",
        f"Here is my verdict: {GOOD}",
        f"{GOOD} I hope this helps.",
        f"```json\n{GOOD}",
        f"{GOOD}\n{GOOD}",
        GOOD[:-20],
        "[" + GOOD + "]",
        '"4"',
        "null",
        "5",
        GOOD[:-1] + ', "overall": {"reason": "r", "score": 5}}',
        GOOD.replace('"faithfulness"', '"correctness"'),  # one metric twice: which one counts?
        "[" * 100_000,
        '{"correctness": {"reason": "r", "reason": "s", "score": 3}}',
    ],
)
def test_reply_that_is_not_one_object_fails_every_metric(raw: str) -> None:
    results = read_results(raw)
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, "parse")}
    assert parse_scores_reply(ok_reply(raw)).outcome is Outcome.PARSE


@pytest.mark.parametrize(
    "part", ['{"score": 4}', '{"reason": 1, "score": 4}', '{"reason": "r", "score": 4, "sure": 1}', "4", "null", "[]"]
)
def test_malformed_verdict_fails_only_its_metric(part: str) -> None:
    raw = f'{{"correctness": {part}, "faithfulness": {{"reason": "r", "score": 5}}}}'
    results = read_results(raw, ("correctness", "faithfulness"))
    assert results["correctness"].reason == "parse"
    assert results["faithfulness"].value == 5.0
    assert parse_scores_reply(ok_reply(raw)).outcome is Outcome.OK


def test_missing_verdict_fails_only_its_metric() -> None:
    results = read_results('{"correctness": {"reason": "r", "score": 5}}')
    assert results["correctness"].value == 5.0
    assert results["faithfulness"].reason == results["completeness"].reason == "parse"


def test_unrequested_metric_fails_parsing() -> None:
    assert {r.reason for r in read_results(GOOD, ("correctness",)).values()} == {"parse"}


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.TRUNCATED, "truncated"), (Outcome.REFUSED, "refused"), (Outcome.FILTERED, "filtered")]
    + [(outcome, str(outcome)) for outcome in Outcome if outcome is not Outcome.OK],
)
def test_failed_call_fails_every_metric_with_its_outcome(outcome: Outcome, reason: str) -> None:
    reply = JudgeReply(outcome, raw=GOOD)  # even if the text looks like a verdict
    results = read_reply(reply, EN, ALL)
    assert {r.reason for r in results.values()} == {reason}
    assert parse_scores_reply(reply).outcome is outcome


def test_unstorable_characters_in_a_reason_are_replaced() -> None:
    raw = '{"correctness": {"reason": " nul \\u0000 half \\ud800 ", "score": 3}}'
    result = read_results(raw, ("correctness",))["correctness"]
    assert result.reason == "nul \ufffd half \ufffd"
    assert result.value == 3.0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["reason", "score", "x"]), inner),
    max_leaves=8,
)
shaped_replies = st.dictionaries(st.sampled_from([*ALL, "other"]), json_values).map(json.dumps)
near_replies = st.builds(
    lambda cut, extra: GOOD[:cut] + extra + GOOD[cut:], st.integers(0, len(GOOD)), st.text(max_size=4)
)


@given(st.text() | shaped_replies | near_replies | json_values.map(json.dumps))
@example('{"correctness": {"reason": "\\ud800", "score": 5}}')
def test_any_text_parses_to_scores_it_contains_or_to_a_failure(raw: str) -> None:
    for result in read_results(raw).values():
        if result.status is Status.SCORED:
            assert result.value in {1.0, 2.0, 3.0, 4.0, 5.0}
            assert str(int(result.value)) in raw or "e" in raw  # 5 may be written as 0.5e1
        else:
            assert result.reason in {"parse", "scale"}
