"""Decoration around exactly one verdict is ignored; ambiguous text has no verdict."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.calls import ResponseFormat
from evaluation.judging.prompt import parse_object, parse_reply
from evaluation.judging.verdict_text import find_verdict
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import call, ok_reply

VERDICT = '{"correctness": {"reason": "r", "score": 4}}'
OTHER_VERDICT = '{"correctness": {"reason": "q", "score": 1}}'
LINES = json.dumps(json.loads(VERDICT), indent=2)
SEPARATORS = json.dumps({"correctness": {"reason": "a\u2028b\u0085c", "score": 4}}, ensure_ascii=False)


def verdict_score(text: str, response_format: ResponseFormat) -> int | None:
    """The score of the only verdict in the text, or ``None``."""
    parsed = parse_reply(ok_reply(text), call().judge_request, response_format)
    return parsed.parts["correctness"]["score"] if parsed.outcome is Outcome.OK else None


@pytest.mark.parametrize("response_format", list(ResponseFormat))
@pytest.mark.parametrize("run", [" ", "\u200b", "\n", "</s>", "`", "~", "```json ", "*", "# ", "{", "}"])
def test_long_runs_of_decoration_are_scanned_once(run: str, response_format: ResponseFormat) -> None:
    """A pattern that scans a run from each of its characters takes minutes for these."""
    long_run = run * (300_000 // len(run))
    texts = (f"{long_run}x", f"x{long_run}x", f"```{long_run}x", f'{{"reason": "{long_run}x"}}', f"{VERDICT}{long_run}")
    for text in texts:
        span = find_verdict(text, response_format)
        assert span is None or 0 <= span[0] <= span[1] <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        VERDICT,
        f"\ufeff{VERDICT}\u200b\n",
        f"```json\n{VERDICT}\n```",
        f"```\n{LINES}\n```\n",
        f"```JSON {VERDICT} ```",
        f"~~~json\n{VERDICT}\n~~~",
        f"````\n{VERDICT}\n````",
        f"`{VERDICT}`",
        f"**{VERDICT}**",
        f"{VERDICT}<|im_end|>",
        f"{VERDICT}</s>\n",
        f"```json\n{VERDICT}\n```<|eot_id|>",
        f"{VERDICT}<end_of_turn>",
        SEPARATORS,
        VERDICT.replace('"r"', '"see ```x``` there"'),
    ],
)
def test_single_object_is_read_despite_decoration(text: str) -> None:
    assert verdict_score(text, ResponseFormat.JSON_OBJECT) == 4


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{VERDICT}\n```\n```json\n{OTHER_VERDICT}\n```",
        f"```json\n{VERDICT}\n{OTHER_VERDICT}\n```",
        f"Here it is:\n```json\n{VERDICT}\n```",
        f"```json\n{VERDICT}\n```\nI hope this helps.",
        f"```json\n{VERDICT}",
        f"{VERDICT}\n```",
        f"**Verdict** {VERDICT}",
        f"{OTHER_VERDICT}<|im_end|>{VERDICT}",
        f"> {VERDICT}",
        f"<|im_start|>{VERDICT}",
        "```json\n```",
        "```",
    ],
)
def test_prose_open_fence_and_second_object_are_rejected(text: str) -> None:
    assert verdict_score(text, ResponseFormat.JSON_OBJECT) is None


@pytest.mark.parametrize(
    "text",
    [
        f"Fine.\nVERDICT: {VERDICT}",
        f"Fine.\n\n**VERDICT:** {VERDICT}",
        f"**VERDICT: {VERDICT}**",
        f"*VERDICT*: {VERDICT}",
        f"__VERDICT__: {VERDICT}",
        f"### VERDICT: {VERDICT}",
        f"`VERDICT: {VERDICT}`",
        f"좋습니다.\nVERDICT： {VERDICT}",
        f"VERDICT:\n{LINES}",
        f"VERDICT:\n```json\n{LINES}\n```",
        f"Here.\n\n```\nVERDICT: {VERDICT}\n```",
        f"```\nVERDICT: {VERDICT}\n```",
        f"VERDICT: {VERDICT}<|im_end|>\n",
        f"\u200bVERDICT:\u00a0{VERDICT}\ufeff",
        f"VERDICT: {SEPARATORS}",
        f"<think>\n{OTHER_VERDICT} at first.\n</think>\n\nVERDICT: {VERDICT}",
        f'The answer says "> VERDICT: {OTHER_VERDICT}" itself.\nVERDICT: {VERDICT}',
    ],
)
def test_text_format_finds_one_mark_despite_decoration(text: str) -> None:
    assert verdict_score(text, ResponseFormat.TEXT) == 4


@pytest.mark.parametrize(
    "text",
    [
        VERDICT,
        f"```json\n{VERDICT}\n```",
        f"VERDICT: {OTHER_VERDICT}\nVERDICT: {VERDICT}",
        f"**VERDICT:** {OTHER_VERDICT}\n\nVERDICT: {VERDICT}",
        f"VERDICT： {OTHER_VERDICT}\n**VERDICT**: {VERDICT}",
        f"> VERDICT: {VERDICT}",
        f"So VERDICT: {VERDICT}",
        f"VERDICT: {VERDICT}\nThat is all.",
        f"VERDICT: {VERDICT}\n\n{OTHER_VERDICT}",
        f"VERDICT: about {VERDICT}",
        f"VERDICT {VERDICT}",
        "VERDICT: **4**",
        f"VERDICT: {VERDICT}\n```",
    ],
)
def test_text_format_rejects_second_mark_quote_and_prose(text: str) -> None:
    assert verdict_score(text, ResponseFormat.TEXT) is None


@given(st.text(alphabet=' \n`*_~{}":VERDICT：jsonx<|>/4', max_size=60), st.sampled_from(ResponseFormat))
def test_verdict_span_is_within_the_text(text: str, response_format: ResponseFormat) -> None:
    span = find_verdict(text, response_format)
    assert span is None or 0 <= span[0] <= span[1] <= len(text)


@given(st.dictionaries(st.text(max_size=4), st.text(alphabet="`*_~\n{} VERDICT:", max_size=12), min_size=1))
def test_object_content_is_never_changed(value: dict[str, str]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for reply_text in (text, f"```json\n{text}\n```", f" {text}</s>"):
        span = find_verdict(reply_text, ResponseFormat.JSON_OBJECT)
        assert span is not None
        assert parse_object(reply_text[slice(*span)]) == value
