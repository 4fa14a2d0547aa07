"""Server-sent events: a stream's pieces of an answer, and the values its events carry."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluation.connectors.mapping import searched
from evaluation.connectors.protocol import AskFailed
from evaluation.network.completions import content_text
from evaluation.network.outcomes import Outcome, excerpt, storable

DONE = "[DONE]"  # ends the streams of many services, and is no JSON
_RAW = 4_000


@dataclass(slots=True)
class Streamed:
    """What a stream held. ``error`` is what an event named ``error`` said; ``first_token_seconds`` runs from
    ``started``, the request, to the first piece."""

    events: list[Any] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    first_token_seconds: float | None = None
    error: str | None = None
    raw: str = ""

    @property
    def text(self) -> str:
        """All pieces."""
        return "".join(self.pieces)

    def find(self, expression: str) -> Any:
        """The value of an expression in the last event that has one."""
        values = (searched(expression, event) for event in reversed(self.events))
        return next((value for value in values if value is not None), None)


async def read_events(chunks: AsyncIterator[bytes], delta: str, end: str, started: float) -> Streamed:
    """Read a stream to its end; ``delta`` finds the piece of the answer in an event's JSON, ``end`` is the data of the
    last event where streams have such a one. ``started`` is when it was asked for, in monotonic seconds.

    :raises AskFailed: ``wrong_content`` for an event that is no JSON, ``connection`` where the last event is missing.
    :raises TransportFault: where the stream breaks off or is too large.
    """
    found, kept, ended = Streamed(), bytearray(), not end
    async for name, data in _events(chunks, kept):
        if data in (end, DONE):
            ended = ended or data == end
            break
        if name == "error":
            found.error, ended = storable(data), True
            break
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise AskFailed("wrong_content", detail="an event is no JSON", outcome=Outcome.WRONG_CONTENT) from error
        found.events.append(event)
        piece = searched(delta, event) if delta else None
        if isinstance(piece, list) and (piece := content_text(piece)) is None:
            raise AskFailed("wrong_content", detail="a piece of the answer is no text")
        if isinstance(piece, str) and piece:
            if found.first_token_seconds is None:
                found.first_token_seconds = time.monotonic() - started
            found.pieces.append(piece)
    if not ended:
        raise AskFailed("connection", detail="the stream broke off", outcome=Outcome.CONNECTION)
    found.raw = excerpt(bytes(kept))
    return found


async def _events(chunks: AsyncIterator[bytes], kept: bytearray) -> AsyncIterator[tuple[str, str]]:
    """Name and data of each event; the stream's first part is ``kept``."""
    name, data = "", list[str]()
    async for line in _lines(chunks, kept):
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


async def _lines(chunks: AsyncIterator[bytes], kept: bytearray) -> AsyncIterator[str]:
    rest = bytearray()
    async for chunk in chunks:
        kept += chunk[: max(0, _RAW - len(kept))]
        rest += chunk
        if b"\n" in chunk:
            for line in _whole_lines(rest):
                yield line
    if rest:
        yield rest.decode("utf-8", "replace").rstrip("\r")


def _whole_lines(rest: bytearray) -> Iterator[str]:
    """The complete lines at the front, which are taken away."""
    *whole, last = bytes(rest).split(b"\n")
    rest[:] = last
    return (line.decode("utf-8", "replace").rstrip("\r") for line in whole)
