"""Batches of an OpenAI-compatible endpoint: one method is one HTTP request over the guarded transport."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from evaluation.extras.batches.wire import Lines, Told, as_form, creation, read_batch, read_id, read_lines, read_page
from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.judging.origins import AllowList
from evaluation.judging.retrying import retry_after_seconds
from evaluation.judging.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault
from evaluation.judging.wire import read_error

MOST_BYTES = 256_000_000  # of a file of replies: 2,000 lines with log probabilities are about 50 million
T = TypeVar("T")
PAGE, MOST_PAGES = 100, 20  # of batches that are listed, the newest first


class BatchFault(Exception):
    """A request that did not give what was asked for; ``reply`` says how it ended."""

    def __init__(self, reply: JudgeReply) -> None:
        self.reply = reply
        super().__init__(f"{reply.outcome} {reply.detail}".strip())


class BatchClient:
    """Files and batches under the base URL, from synchronous code. Use as a context manager. What goes wrong is raised
    as :class:`BatchFault`.

    :raises Refused: ``origin_invalid``, ``origin_not_allowed`` when the base URL may not be called.
    """

    def __init__(
        self, *, base_url: str, key: str = "", allowed_origins: Iterable[str], deadlines: Deadlines | None = None
    ) -> None:
        allowed = AllowList(allowed_origins)
        origin = allowed.check(base_url)
        self._deadlines = deadlines or Deadlines()
        self._transport = GuardedTransport(origin, allowed, key, self._deadlines, MOST_BYTES)
        self._base = base_url.rstrip("/")
        self._loop = asyncio.new_event_loop()

    def upload(self, lines: bytes) -> str:
        """Hand over a file of requests; its id."""
        boundary = uuid4().hex
        form = f"multipart/form-data; boundary={boundary}"
        return _found(read_id(self._ask("POST", "/files", as_form(lines, boundary), form)))

    def create(self, file_id: str, mark: str) -> Told:
        """Create a batch of an uploaded file, marked so that it can be found again."""
        return _found(read_batch(self._ask("POST", "/batches", creation(file_id, mark))))

    def find(self, mark: str) -> Told | None:
        """The batch with the mark; ``None`` where the server's list does not have it."""
        after = ""
        for _ in range(MOST_PAGES):
            page = read_page(self._ask("GET", f"/batches?limit={PAGE}{after}"))
            if page is None:
                raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, detail="no list of batches"))
            batches, more = page
            if ours := next((told for told in batches if told.mark == mark), None):
                return ours
            if not more or not batches:
                return None
            after = f"&after={batches[-1].provider_id}"
        raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, detail="the list of batches does not end"))

    def look(self, provider_id: str) -> Told:
        """How far a batch is."""
        return _found(read_batch(self._ask("GET", f"/batches/{provider_id}")))

    def cancel(self, provider_id: str) -> Told:
        """Ask for a batch to be ended; what has been done by then is still to be had."""
        return _found(read_batch(self._ask("POST", f"/batches/{provider_id}/cancel")))

    def replies(self, file_id: str) -> Lines:
        """The replies in a file."""
        return read_lines(self._ask("GET", f"/files/{file_id}/content"))

    def _ask(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> bytes:
        started = time.monotonic()
        try:
            response = self._loop.run_until_complete(self._sent(method, self._base + path, body, content_type))
        except TransportFault as fault:
            raise BatchFault(JudgeReply(fault.outcome, detail=str(fault)[:200])) from fault
        if response.status in {200, 201}:
            return response.body
        waiting = retry_after_seconds(response.headers, datetime.now(UTC))
        reply = read_error(response.status, response.body)
        raise BatchFault(replace(reply, retry_after=waiting, elapsed_seconds=time.monotonic() - started))

    async def _sent(self, method: str, url: str, body: bytes, content_type: str) -> HttpResponse:
        try:
            async with asyncio.timeout(self._deadlines.total):
                return await self._transport.request(method, url, body, content_type)
        except TimeoutError as error:
            raise TransportFault(Outcome.TIMEOUT, f"no complete answer in {self._deadlines.total:g} s") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._transport.aclose())
        self._loop.close()


def _found(value: T | None) -> T:
    """What was read, where it could be."""
    if not value:
        raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, http_status=200, detail="not what was asked for"))
    return value
