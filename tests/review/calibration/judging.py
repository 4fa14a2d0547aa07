"""Judges behind a real socket whose error depends on the prompt."""

from __future__ import annotations

import json
import re
from typing import Any

from aiohttp import web

from tests.judge_server.actions import Action, completion, valid_reply
from tests.judge_server.received import ReceivedRequest

EXAMPLE = re.compile(r"BEGIN example \d+\n(.*)\nEND example")


def biased_judge(offset_of: Any) -> Action:
    """Answer with the answer's worth plus ``offset_of(worth, number, prompt)``."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        match = re.search(r"Answer (\d+), worth (\d)\.", str(request.block["answer"]))
        assert match is not None
        level = max(1, min(5, int(match[2]) + offset_of(int(match[2]), int(match[1]), request.text)))
        reply = {name: {"reason": "read", "score": level} for name in (request.schema or {}).get("properties", {})}
        return web.json_response(completion(request, json.dumps(reply), as_asked=True))

    return act


def offset_without_examples(right: int, number: int, prompt: str) -> int:
    """Two levels off, alternately up and down, unless the prompt shows at least five graded answers."""
    return 0 if len(EXAMPLE.findall(prompt)) >= 5 else (2 if number % 2 else -2)
