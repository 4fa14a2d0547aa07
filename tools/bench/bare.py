"""Loops that call a judge and store nothing, as a yardstick: ``python -m tools.bench.bare NAME BASE_URL CALLS``.

Prints wall and CPU seconds as JSON, imports excluded. The request has the size of the engine's."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
from openai import AsyncOpenAI, DefaultAioHttpClient

CONCURRENCY = int(os.environ.get("BENCH_PLACES", "32"))
MESSAGES = [
    {"role": "system", "content": "Rate the answer on every level of the rubric. " * 60},
    {"role": "user", "content": "BEGIN answer\nThe river rises in the north and reaches the sea.\nEND answer\n" * 40},
]
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "reason": {"type": "string"}},
    "required": ["score", "reason"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}


async def repeat_calls(call: Callable[[], Awaitable[object]], calls: int) -> None:
    """Make ``calls`` calls, at most ``CONCURRENCY`` at a time."""
    remaining = iter(range(calls))

    async def worker() -> None:
        for _ in remaining:
            await call()

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


async def sdk(base_url: str, calls: int, *, over_aiohttp: bool) -> None:
    """``AsyncOpenAI``, its typed call."""
    http = DefaultAioHttpClient(trust_env=False) if over_aiohttp else None
    async with AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0, http_client=http) as client:

        async def call_judge() -> None:
            completion = await client.chat.completions.create(
                model="test-model",
                messages=MESSAGES,  # type: ignore[arg-type]
                response_format=FORMAT,  # type: ignore[arg-type]
            )
            json.loads(completion.choices[0].message.content or "")

        await repeat_calls(call_judge, calls)


async def http_client(base_url: str, calls: int) -> None:
    """Bare aiohttp."""
    body = {"model": "test-model", "messages": MESSAGES, "response_format": FORMAT}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call_judge() -> None:
            async with session.post(f"{base_url}/chat/completions", json=body) as response:
                json.loads((await response.json())["choices"][0]["message"]["content"])

        await repeat_calls(call_judge, calls)


LOOPS: dict[str, Callable[[str, int], Awaitable[None]]] = {
    "AsyncOpenAI": lambda url, calls: sdk(url, calls, over_aiohttp=False),
    "AsyncOpenAI over aiohttp": lambda url, calls: sdk(url, calls, over_aiohttp=True),
    "aiohttp": http_client,
}


async def main(name: str, base_url: str, calls: int) -> dict[str, float]:
    """Wall and CPU seconds of one loop."""
    wall, cpu = time.monotonic(), time.process_time()
    await LOOPS[name](base_url, calls)
    return {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
