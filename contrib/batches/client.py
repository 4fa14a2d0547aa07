"""Batches of an OpenAI-compatible endpoint: the format, read with suspicion, and a client of which one method is one
HTTP request over the guarded transport."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import orjson

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.providers.openai import read_completion, read_error, request_body
from evaluation.network.outcomes import Outcome, excerpt, storable
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault

MARK = "concord_batch"  # the name under which a batch's metadata keeps the id that its sender chose
_PATH = "/v1/chat/completions"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NEVER_RUN = frozenset({"batch_expired", "batch_cancelled"})  # codes of lines that the provider did not get to
_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}", re.ASCII)
_MOST = 10_000_000
_OK = 200


@dataclass(frozen=True, slots=True)
class Told:
    """What a server says of a batch. ``mark`` is the id its sender chose, ``reason`` the first error's code,
    ``expires_at`` in seconds of the Unix clock; ids of files are empty where there is none."""

    provider_id: str
    status: str
    mark: str = ""
    output_file: str = ""
    error_file: str = ""
    reason: str = ""
    done: int = 0
    failed: int = 0
    expires_at: int | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in _ENDED


@dataclass(frozen=True, slots=True)
class Lines:
    """The replies in a file by custom id, the first of each counting. ``spoilt`` lines could not be read or are
    repetitions."""

    replies: dict[str, JudgeReply] = field(default_factory=dict)
    spoilt: int = 0


def request_line(custom_id: str, call: JudgeCall) -> bytes:
    """One line of the file of requests."""
    line = {"custom_id": custom_id, "method": "POST", "url": _PATH, "body": request_body(call)}
    return orjson.dumps(line) + b"\n"


def creation(file_id: str, mark: str) -> bytes:
    """The body that creates a batch."""
    return orjson.dumps(
        {"input_file_id": file_id, "endpoint": _PATH, "completion_window": "24h", "metadata": {MARK: mark}}
    )


def read_id(body: bytes) -> str:
    """The id of what was made; empty where there is none that could stand in an address."""
    return _id(_json(body), "id")


def read_batch(body: bytes) -> Told | None:
    """A batch; ``None`` where this is none."""
    return _told(_json(body))


def read_page(body: bytes) -> tuple[list[Told], bool] | None:
    """Batches of a list, and whether there are more; ``None`` where this is no list."""
    page = _json(body)
    data = page.get("data") if isinstance(page, Mapping) else None
    if not isinstance(data, list):
        return None
    return [told for told in map(_told, data) if told is not None], page.get("has_more") is True


def read_lines(body: bytes) -> Lines:
    """The replies of an output or error file."""
    found, spoilt = dict[str, JudgeReply](), 0
    for text in body.splitlines():
        if not text.strip():
            continue
        line = _json(text)
        custom_id = line.get("custom_id") if isinstance(line, Mapping) else None
        reply = _reply(line) if isinstance(line, Mapping) else None
        if not isinstance(custom_id, str) or reply is None or custom_id in found:
            spoilt += 1
            continue
        found[custom_id] = replace(reply, batch=True)
    return Lines(found, spoilt)


def _reply(line: Mapping[str, Any]) -> JudgeReply | None:
    """The reply of a line as that of a single call would be read. A line that the provider never ran was not sent to
    the judge."""
    response, error = line.get("response"), line.get("error")
    if isinstance(response, Mapping):
        status, body = response.get("status_code"), json.dumps(response.get("body")).encode()
        if not isinstance(status, int) or isinstance(status, bool):
            return None
        return read_completion(body, "application/json") if status == _OK else read_error(status, body)
    if not isinstance(error, Mapping):
        return None
    body = json.dumps({"error": dict(error)}).encode()
    if error.get("code") in _NEVER_RUN:
        return JudgeReply(Outcome.NOT_SENT, raw=excerpt(body))
    return replace(read_error(500, body), http_status=None)


def _told(batch: Any) -> Told | None:
    provider_id = _id(batch, "id")
    status = batch.get("status") if isinstance(batch, Mapping) else None
    if not provider_id or not isinstance(status, str):
        return None
    counts, metadata = _mapping(batch, "request_counts"), _mapping(batch, "metadata")
    errors = _mapping(batch, "errors").get("data")
    first = errors[0] if isinstance(errors, list) and errors else None
    mark, expires = metadata.get(MARK), batch.get("expires_at")
    return Told(
        provider_id=provider_id,
        status=storable(status)[:20],
        mark=mark if isinstance(mark, str) else "",
        output_file=_id(batch, "output_file_id"),
        error_file=_id(batch, "error_file_id"),
        reason=storable(str(first.get("code") or ""))[:100] if isinstance(first, Mapping) else "",
        done=_count(counts.get("completed")),
        failed=_count(counts.get("failed")),
        expires_at=expires if isinstance(expires, int) and 0 < expires < 10**11 else None,
    )


def _id(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) and _ID.fullmatch(found) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else 0


def _mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any line
        return None


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
        self._base_url = base_url
        self._transport = GuardedTransport(
            base_url, key=key, allowed_origins=allowed_origins, deadlines=deadlines, most_bytes=MOST_BYTES
        )
        self._loop = asyncio.new_event_loop()

    def upload(self, lines: bytes) -> str:
        """Hand over a file of requests; its id."""
        return _found(read_id(self._ask(self._llm.upload("requests.jsonl", lines, "batch"))))

    def create(self, file_id: str, mark: str) -> Told:
        """Create a batch of an uploaded file, marked so that it can be found again."""
        return _found(read_batch(self._ask(self._llm.post("/batches", creation(file_id, mark)))))

    def find(self, mark: str) -> Told | None:
        """The batch with the mark; ``None`` where the server's list does not have it."""
        after = ""
        for _ in range(MOST_PAGES):
            page = read_page(self._ask(self._llm.get(f"/batches?limit={PAGE}{after}")))
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
        return _found(read_batch(self._ask(self._llm.get(f"/batches/{provider_id}"))))

    def cancel(self, provider_id: str) -> Told:
        """Ask for a batch to be ended; what has been done by then is still to be had."""
        return _found(read_batch(self._ask(self._llm.post(f"/batches/{provider_id}/cancel", b""))))

    def replies(self, file_id: str) -> Lines:
        """The replies in a file."""
        return read_lines(self._ask(self._llm.get(f"/files/{file_id}/content")))

    def _ask(self, asked: Coroutine[Any, Any, HttpResponse]) -> bytes:
        started = time.monotonic()
        try:
            response = self._loop.run_until_complete(asked)
        except TransportFault as fault:
            raise BatchFault(JudgeReply(fault.outcome, detail=str(fault)[:200])) from fault
        if response.status in {200, 201}:
            return response.body
        waiting = retry_after_seconds(response.headers, datetime.now(UTC))
        reply = read_error(response.status, response.body)
        raise BatchFault(replace(reply, retry_after=waiting, elapsed_seconds=time.monotonic() - started))

    def __enter__(self) -> Self:
        self._llm = self._transport.llm(self._base_url)
        return self

    def __exit__(self, *details: Any) -> None:
        self._loop.run_until_complete(self._transport.aclose())
        self._loop.close()


def _found(value: T | None) -> T:
    """What was read, where it could be."""
    if not value:
        raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, http_status=200, detail="not what was asked for"))
    return value
