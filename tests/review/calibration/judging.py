"""Judges behind a real socket who say by the wording of the prompt how near they come."""

from __future__ import annotations

import json
import re
from typing import Any

from aiohttp import web

from tests.judge_server.actions import Action, completion, fitting
from tests.judge_server.received import Received

EXAMPLE = re.compile(r"BEGIN example \d+\n(.*)\nEND example")


def judging(off: Any) -> Action:
    """A judge who is so far off: a function of the worth, the number of the answer and the whole prompt."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await fitting()(request, http)
        found = re.search(r"Answer (\d+), worth (\d)\.", str(request.block["answer"]))
        assert found is not None
        level = max(1, min(5, int(found[2]) + off(int(found[2]), int(found[1]), request.text)))
        said = {name: {"reason": "read", "score": level} for name in (request.schema or {}).get("properties", {})}
        return web.json_response(completion(request, json.dumps(said), as_asked=True))

    return act


def learning(right: int, number: int, prompt: str) -> int:
    """Two levels off, one way or the other, unless the prompt shows at least five graded answers."""
    return 0 if len(EXAMPLE.findall(prompt)) >= 5 else (2 if number % 2 else -2)
