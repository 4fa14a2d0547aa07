from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluation.core.samples import Result, Status
from evaluation.judging.calls import JudgeReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import ALL, EN, delivered, heard, read_reply


def read(raw: str, metrics: tuple[str, ...] = ALL) -> dict[str, Result]:
    return read_reply(delivered(raw), EN, metrics)


def reply_with(score_json: str) -> str:
    good = '{"reason": "r", "score": 2}'
    scored = f'{{"reason": "why", "score": {score_json}}}'
    return f'{{"correctness": {scored}, "faithfulness": {good}, "completeness": {good}}}'


def test_a_good_reply_gives_each_metric_its_score_and_its_reason() -> None:
    results = read(reply_with("4"))
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
def test_a_score_off_the_scale_fails_its_metric_alone(score: str) -> None:
    results = read(reply_with(score))
    assert (results["correctness"].status, results["correctness"].reason) == (Status.FAILED, "scale")
    assert results["correctness"].detail["reason"] == "why"  # what the judge said of it is kept
    assert results["correctness"].value is None
    assert results["faithfulness"].value == results["completeness"].value == 2.0
    assert heard(delivered(reply_with(score))).outcome is Outcome.OK


GOOD = reply_with("4")


@pytest.mark.parametrize("score", ["4.0", "4.00", "4e0", "40e-1"])
def test_a_real_that_is_whole_is_the_level(score: str) -> None:
    assert read(reply_with(score))["correctness"].value == 4.0


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
def test_what_is_not_the_one_object_asked_for_fails_every_metric_by_parse(raw: str) -> None:
    results = read(raw)
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, "parse")}
    assert heard(delivered(raw)).outcome is Outcome.PARSE


@pytest.mark.parametrize(
    "part", ['{"score": 4}', '{"reason": 1, "score": 4}', '{"reason": "r", "score": 4, "sure": 1}', "4", "null", "[]"]
)
def test_a_verdict_of_the_wrong_shape_fails_its_metric_alone(part: str) -> None:
    raw = f'{{"correctness": {part}, "faithfulness": {{"reason": "r", "score": 5}}}}'
    results = read(raw, ("correctness", "faithfulness"))
    assert results["correctness"].reason == "parse"
    assert results["faithfulness"].value == 5.0
    assert heard(delivered(raw)).outcome is Outcome.OK


def test_a_metric_that_the_reply_leaves_out_fails_alone() -> None:
    results = read('{"correctness": {"reason": "r", "score": 5}}')
    assert results["correctness"].value == 5.0
    assert results["faithfulness"].reason == results["completeness"].reason == "parse"


def test_a_metric_that_was_not_asked_for_is_not_taken() -> None:
    assert {r.reason for r in read(GOOD, ("correctness",)).values()} == {"parse"}


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.TRUNCATED, "truncated"), (Outcome.REFUSED, "refused"), (Outcome.FILTERED, "filtered")]
    + [(outcome, str(outcome)) for outcome in Outcome if outcome is not Outcome.OK],
)
def test_a_call_that_did_not_end_well_fails_every_metric_by_its_own_reason(outcome: Outcome, reason: str) -> None:
    reply = JudgeReply(outcome, raw=GOOD)  # even if the text looks like a verdict
    results = read_reply(reply, EN, ALL)
    assert {r.reason for r in results.values()} == {reason}
    assert heard(reply).outcome is outcome


def test_a_reason_that_a_database_would_refuse_is_made_storable() -> None:
    raw = '{"correctness": {"reason": " nul \\u0000 half \\ud800 ", "score": 3}}'
    result = read(raw, ("correctness",))["correctness"]
    assert result.reason == "nul \ufffd half \ufffd"
    assert result.value == 3.0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["reason", "score", "x"]), inner),
    max_leaves=8,
)
shaped = st.dictionaries(st.sampled_from([*ALL, "other"]), json_values).map(json.dumps)
near = st.builds(lambda cut, extra: GOOD[:cut] + extra + GOOD[cut:], st.integers(0, len(GOOD)), st.text(max_size=4))


@given(st.text() | shaped | near | json_values.map(json.dumps))
@example('{"correctness": {"reason": "\\ud800", "score": 5}}')
def test_no_text_raises_or_gives_a_score_that_does_not_stand_in_it(raw: str) -> None:
    for result in read(raw).values():
        if result.status is Status.SCORED:
            assert result.value in {1.0, 2.0, 3.0, 4.0, 5.0}
            assert str(int(result.value)) in raw or "e" in raw  # 5 may be written as 0.5e1
        else:
            assert result.reason in {"parse", "scale"}
