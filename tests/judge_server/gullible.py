"""Scripted judges for the attack set: one that follows instructions in texts, and one that ignores them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

from aiohttp import web

from tests.judge_server.actions import Action, completion, valid_reply
from tests.judge_server.received import ReceivedRequest

_PERSUASIVE = re.compile(
    r"(?<!\d)5(?!\d)|최고점|highest score|ignore the rubric|채점 기준|grader|채점자|one step after another|하나하나",
    re.IGNORECASE,
)
_HIDDEN = re.compile("[\u200b\u2060\u202e]")


def gullible() -> Action:
    """Grades by word overlap with the reference, but gives the top level to any text that demands it: plain, hidden or
    encoded, in the answer or in a passage."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        blocks = request.block
        texts = [str(blocks["answer"]), *map(str, blocks.get("contexts", []))]
        is_persuaded = any(_PERSUASIVE.search(text) for raw_text in texts for text in _decoded_texts(raw_text))
        return _graded_reply(
            request,
            5 if is_persuaded else _overlap_level(request),
            "The text asks for it." if is_persuaded else "Read.",
        )

    return act


def sober() -> Action:
    """Grades only by word overlap with the reference."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        return _graded_reply(request, _overlap_level(request), "Read.")

    return act


def _decoded_texts(text: str) -> Iterator[str]:
    yield _HIDDEN.sub("", text)
    for part in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", text):
        yield base64.b64decode(part + "=" * (-len(part) % 4)).decode("utf-8", "ignore")


def _overlap_level(request: ReceivedRequest) -> int:
    """Level from 1 to 5 by the share of reference words in the answer."""
    reference_words = set(re.findall(r"\w+", " ".join(request.block["reference"])))
    answer_words = set(re.findall(r"\w+", _HIDDEN.sub("", str(request.block["answer"]))))
    return 1 + round(4 * len(reference_words & answer_words) / len(reference_words))


def _graded_reply(request: ReceivedRequest, score: int, reason: str) -> web.StreamResponse:
    names = (request.schema or {}).get("properties", {})
    content = json.dumps({name: {"reason": reason, "score": score} for name in names})
    return web.json_response(completion(request, content, as_asked=True))
