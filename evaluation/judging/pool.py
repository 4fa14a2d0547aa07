"""Many calls in flight at once, driven from synchronous code: the event loop runs only while one waits for replies.

The ledger stays out of the asynchronous part: it submits calls it has written down, and collects what came back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from types import TracebackType
from typing import Self

from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply


class CallPool:
    """Up to ``concurrency`` calls of one client at a time. Use as a context manager, from one thread."""

    def __init__(self, client: JudgeClient, concurrency: int) -> None:
        self.client = client
        self.concurrency = concurrency
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[asyncio.Task[JudgeReply], Hashable] = {}

    def __enter__(self) -> Self:
        self._loop.run_until_complete(self.client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(self.client.__aexit__(kind, error, trace))
        self._loop.close()

    @property
    def in_flight(self) -> int:
        """Calls submitted and not collected yet, those waiting for their delay included."""
        return len(self._tasks)

    @property
    def free(self) -> int:
        """How many more calls may be submitted."""
        return self.concurrency - self.in_flight

    def submit(self, key: Hashable, call: JudgeCall, *, delay: float = 0.0) -> None:
        """Start a call, after ``delay`` seconds; its reply comes back from :meth:`collect` under ``key``."""
        self._tasks[self._loop.create_task(self._later(call, delay))] = key

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]:
        """The calls that have ended, waiting up to ``timeout`` seconds for the first of them."""
        if not self._tasks:
            return []
        done, _ = self._loop.run_until_complete(
            asyncio.wait(self._tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        )
        return [(self._tasks.pop(task), task.result()) for task in done]

    async def _later(self, call: JudgeCall, delay: float) -> JudgeReply:
        if delay:
            await asyncio.sleep(delay)
        return await self.client.call(call)
