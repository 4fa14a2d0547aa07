"""Embeddings of an OpenAI-compatible endpoint: one call is one HTTP request over the guarded transport."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from evaluation.core.canonical import content_hash
from evaluation.embedding.protocol import Embedded
from evaluation.embedding.wire import read_embeddings, request_body
from evaluation.judging.calls import Outcome
from evaluation.judging.origins import AllowList
from evaluation.judging.retrying import retry_after_seconds
from evaluation.judging.transport import Deadlines, GuardedTransport, TransportFault
from evaluation.judging.wire import read_error

_OK = 200
MOST_BYTES = 64_000_000  # 64 vectors of 16,384 numbers of 20 characters would be 21 million


class EndpointEmbedder:
    """Calls ``POST {base_url}/embeddings`` from synchronous code. Use as a context manager.

    :raises Refused: ``origin_invalid``, ``origin_not_allowed`` when the base URL may not be called.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        key: str = "",
        allowed_origins: Iterable[str],
        deadlines: Deadlines | None = None,
        dimensions: int | None = None,
    ) -> None:
        allowed = AllowList(allowed_origins)
        origin = allowed.check(base_url)
        self._url = base_url.rstrip("/") + "/embeddings"
        self._model, self._dimensions = model, dimensions
        self._deadlines = deadlines or Deadlines()
        self._transport = GuardedTransport(origin, allowed, key, self._deadlines, MOST_BYTES)
        self._loop = asyncio.new_event_loop()
        self.space = content_hash(["endpoint", str(origin), base_url, model, dimensions])
        self.provenance: Mapping[str, Any] = {"kind": "endpoint", "model": model, "origin": str(origin)} | (
            {"dimensions": dimensions} if dimensions else {}
        )

    def refuses(self, text: str) -> str:
        """Nothing: which languages a remote model knows is for whoever configured it to say."""
        return ""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One request, within the total deadline."""
        started = time.monotonic()
        embedded = self._loop.run_until_complete(self._within_deadline(texts))
        return replace(embedded, elapsed_seconds=time.monotonic() - started)

    async def _within_deadline(self, texts: Sequence[str]) -> Embedded:
        try:
            async with asyncio.timeout(self._deadlines.total):
                return await self._send(texts)
        except TimeoutError:
            return Embedded(Outcome.TIMEOUT, detail=f"no complete answer in {self._deadlines.total:g} s")

    async def _send(self, texts: Sequence[str]) -> Embedded:
        body = json.dumps(request_body(self._model, texts, self._dimensions), ensure_ascii=False).encode()
        try:
            response = await self._transport.post(self._url, body)
        except TransportFault as fault:
            return Embedded(fault.outcome, detail=str(fault)[:200])
        if response.status == _OK:
            return read_embeddings(response.body, response.headers.get("content-type", ""), len(texts))
        error = read_error(response.status, response.body)
        waiting = retry_after_seconds(response.headers, datetime.now(UTC))
        return Embedded(
            error.outcome, http_status=error.http_status, retry_after=waiting, detail=error.detail, raw=error.raw
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._transport.aclose())
        self._loop.close()
