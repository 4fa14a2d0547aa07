"""The judge behind an OpenAI-compatible endpoint: one call is one HTTP request, and every fault is a reply."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.wire import encoded, read_completion, read_error
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, TransportFault

__all__ = ["Deadlines", "OpenAIJudge"]

MOST_BYTES = 4_000_000  # of a response body
_OK = 200
_SHORTEST_KEY = 8


class OpenAIJudge:
    """Calls ``POST {base_url}/chat/completions``. Use as ``async with``; closing is the caller's.

    :raises Refused: ``origin_invalid``, ``origin_not_allowed`` when the base URL may not be called.
    """

    def __init__(
        self,
        *,
        base_url: str,
        key: str = "",
        allowed_origins: Iterable[str],
        deadlines: Deadlines | None = None,
        azure: str = "",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._base_url, self._key = base_url, key
        self._transport = GuardedTransport(
            base_url, key=key, allowed_origins=allowed_origins, deadlines=deadlines, azure=azure, most_bytes=most_bytes
        )

    async def call(self, request: JudgeCall) -> JudgeReply:
        """One request, within the total deadline. Cancelling it closes its connection."""
        started = time.monotonic()
        reply = await self._send(request)
        return replace(reply, elapsed_seconds=time.monotonic() - started, ended_at=time.time())

    async def _send(self, request: JudgeCall) -> JudgeReply:
        try:
            response = await self._llm.post("/chat/completions", encoded(request), request.model)
        except TransportFault as fault:
            return JudgeReply(fault.outcome, detail=str(fault)[:200])
        if response.status == _OK:
            reply = read_completion(response.body, response.headers.get("content-type", ""))
        else:
            reply = read_error(response.status, response.body)
        if reply.outcome in {Outcome.OK, Outcome.PARSE} and response.status == _OK:
            return reply
        waiting = retry_after_seconds(response.headers, datetime.now(UTC))
        return replace(reply, raw=self._without_key(reply.raw), retry_after=waiting)

    def _without_key(self, text: str) -> str:
        """The text of a failed call, which people are shown, without the key that some servers repeat in it."""
        return text.replace(self._key, "…") if len(self._key) >= _SHORTEST_KEY else text

    async def __aenter__(self) -> Self:
        self._llm = self._transport.llm(self._base_url)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._transport.aclose()
