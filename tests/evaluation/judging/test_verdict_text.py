"""Decoration around exactly one verdict is left out; whatever leaves two readings stays no verdict."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.calls import ResponseFormat
from evaluation.judging.prompt import parse_object, parse_reply
from evaluation.judging.verdict_text import find_verdict
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import call, delivered

ONE = '{"correctness": {"reason": "r", "score": 4}}'
OTHER = '{"correctness": {"reason": "q", "score": 1}}'
LINES = json.dumps(json.loads(ONE), indent=2)
SEPARATORS = json.dumps({"correctness": {"reason": "a\u2028b\u0085c", "score": 4}}, ensure_ascii=False)


def score(text: str, rung: ResponseFormat) -> int | None:
    """The score of the one verdict in the text."""
    heard = parse_reply(delivered(text), call().judge_request, rung)
    return heard.parts["correctness"]["score"] if heard.outcome is Outcome.OK else None


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"\ufeff{ONE}\u200b\n",
        f"```json\n{ONE}\n```",
        f"```\n{LINES}\n```\n",
        f"```JSON {ONE} ```",
        f"~~~json\n{ONE}\n~~~",
        f"````\n{ONE}\n````",
        f"`{ONE}`",
        f"**{ONE}**",
        f"{ONE}<|im_end|>",
        f"{ONE}</s>\n",
        f"```json\n{ONE}\n```<|eot_id|>",
        f"{ONE}<end_of_turn>",
        SEPARATORS,
        ONE.replace('"r"', '"see ```x``` there"'),
    ],
)
def test_an_object_alone_is_read_whatever_is_around_it(text: str) -> None:
    assert score(text, ResponseFormat.JSON_OBJECT) == 4


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{ONE}\n```\n```json\n{OTHER}\n```",
        f"```json\n{ONE}\n{OTHER}\n```",
        f"Here it is:\n```json\n{ONE}\n```",
        f"```json\n{ONE}\n```\nI hope this helps.",
        f"```json\n{ONE}",
        f"{ONE}\n```",
        f"**Verdict** {ONE}",
        f"{OTHER}<|im_end|>{ONE}",
        f"> {ONE}",
        f"<|im_start|>{ONE}",
        "```json\n```",
        "```",
    ],
)
def test_prose_half_a_fence_and_a_second_object_are_no_verdict(text: str) -> None:
    assert score(text, ResponseFormat.JSON_OBJECT) is None


@pytest.mark.parametrize(
    "text",
    [
        f"Fine.\nVERDICT: {ONE}",
        f"Fine.\n\n**VERDICT:** {ONE}",
        f"**VERDICT: {ONE}**",
        f"*VERDICT*: {ONE}",
        f"__VERDICT__: {ONE}",
        f"### VERDICT: {ONE}",
        f"`VERDICT: {ONE}`",
        f"좋습니다.\nVERDICT： {ONE}",
        f"VERDICT:\n{LINES}",
        f"VERDICT:\n```json\n{LINES}\n```",
        f"Here.\n\n```\nVERDICT: {ONE}\n```",
        f"```\nVERDICT: {ONE}\n```",
        f"VERDICT: {ONE}<|im_end|>\n",
        f"\u200bVERDICT:\u00a0{ONE}\ufeff",
        f"VERDICT: {SEPARATORS}",
        f"<think>\n{OTHER} at first.\n</think>\n\nVERDICT: {ONE}",
        f'The answer says "> VERDICT: {OTHER}" itself.\nVERDICT: {ONE}',
    ],
)
def test_on_the_last_rung_the_one_mark_is_found_whatever_is_around_it(text: str) -> None:
    assert score(text, ResponseFormat.TEXT) == 4


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"```json\n{ONE}\n```",
        f"VERDICT: {OTHER}\nVERDICT: {ONE}",
        f"**VERDICT:** {OTHER}\n\nVERDICT: {ONE}",
        f"VERDICT： {OTHER}\n**VERDICT**: {ONE}",
        f"> VERDICT: {ONE}",
        f"So VERDICT: {ONE}",
        f"VERDICT: {ONE}\nThat is all.",
        f"VERDICT: {ONE}\n\n{OTHER}",
        f"VERDICT: about {ONE}",
        f"VERDICT {ONE}",
        "VERDICT: **4**",
        f"VERDICT: {ONE}\n```",
    ],
)
def test_on_the_last_rung_a_second_mark_a_quote_and_prose_are_no_verdict(text: str) -> None:
    assert score(text, ResponseFormat.TEXT) is None


@given(st.text(alphabet=' \n`*_~{}":VERDICT：jsonx<|>/4', max_size=60), st.sampled_from(ResponseFormat))
def test_any_text_has_a_place_inside_it_or_none(text: str, rung: ResponseFormat) -> None:
    place = find_verdict(text, rung)
    assert place is None or 0 <= place[0] <= place[1] <= len(text)


@given(st.dictionaries(st.text(max_size=4), st.text(alphabet="`*_~\n{} VERDICT:", max_size=12), min_size=1))
def test_an_object_is_never_changed_by_what_stands_in_it(value: dict[str, str]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for written in (text, f"```json\n{text}\n```", f" {text}</s>"):
        place = find_verdict(written, ResponseFormat.JSON_OBJECT)
        assert place is not None
        assert parse_object(written[slice(*place)]) == value
