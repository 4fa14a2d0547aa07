"""Server-sent events: pieces of a streamed answer, and values in the events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluation.connectors.mapping import search_path
from evaluation.connectors.protocol import AskFailed
from evaluation.network.completions import content_text
from evaluation.network.outcomes import Outcome, excerpt, replace_unstorable

# Ends the streams of many services, and is not JSON.
DONE = "[DONE]"
_MAX_RAW = 4_000


@dataclass(slots=True)
class StreamContent:
    """Content of a stream. ``error`` is the data of an ``error`` event. ``first_token_seconds`` is measured from the
    request to the first piece."""

    events: list[Any] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    first_token_seconds: float | None = None
    error: str | None = None
    raw: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def find(self, expression: str) -> Any:
        """Value of an expression in the last event that has one."""
        values = (search_path(expression, event) for event in reversed(self.events))
        return next((value for value in values if value is not None), None)


async def read_events(chunks: AsyncIterator[bytes], delta: str, end: str, started: float) -> StreamContent:
    """Read a stream to its end.

    ``delta`` finds a piece of the answer in an event's JSON. ``end`` is the data of the final event, if the service
    sends one. ``started`` is the time of the request in monotonic seconds.

    :raises AskFailed: ``wrong_content`` for an event that is not JSON, ``connection`` if the final event is missing.
    :raises TransportFault: if the stream breaks off or is too large."""
    content, raw_prefix, has_ended = StreamContent(), bytearray(), not end
    async for name, data in _events(chunks, raw_prefix):
        if data in (end, DONE):
            has_ended = has_ended or data == end
            break
        if name == "error":
            content.error, has_ended = replace_unstorable(data), True
            break
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise AskFailed("wrong_content", detail="an event is not JSON", outcome=Outcome.WRONG_CONTENT) from error
        content.events.append(event)
        piece = search_path(delta, event) if delta else None
        if isinstance(piece, list) and (piece := content_text(piece)) is None:
            raise AskFailed("wrong_content", detail="a piece of the answer is not text")
        if isinstance(piece, str) and piece:
            if content.first_token_seconds is None:
                content.first_token_seconds = time.monotonic() - started
            content.pieces.append(piece)
    if not has_ended:
        raise AskFailed("connection", detail="the stream ended early", outcome=Outcome.CONNECTION)
    content.raw = excerpt(bytes(raw_prefix))
    return content


async def _events(chunks: AsyncIterator[bytes], raw_prefix: bytearray) -> AsyncIterator[tuple[str, str]]:
    """Name and data of each event. The start of the stream is copied to ``raw_prefix``."""
    name, data = "", list[str]()
    async for line in _lines(chunks, raw_prefix):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "event":
            name = value
        elif key == "data":
            data.append(value)
    if data:
        yield name, "\n".join(data)


async def _lines(chunks: AsyncIterator[bytes], raw_prefix: bytearray) -> AsyncIterator[str]:
    buffer = bytearray()
    async for chunk in chunks:
        raw_prefix += chunk[: max(0, _MAX_RAW - len(raw_prefix))]
        buffer += chunk
        if b"\n" in chunk:
            for line in _take_lines(buffer):
                yield line
    if buffer:
        yield buffer.decode("utf-8", "replace").rstrip("\r")


def _take_lines(buffer: bytearray) -> Iterator[str]:
    """Remove the complete lines from the buffer and return them."""
    *complete, last = bytes(buffer).split(b"\n")
    buffer[:] = last
    return (line.decode("utf-8", "replace").rstrip("\r") for line in complete)
