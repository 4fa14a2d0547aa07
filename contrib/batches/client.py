"""Batch API in OpenAI's format: a defensive parser, and a client with one HTTP request a method.

This module does not import Django."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import orjson

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.providers.openai import read_completion, read_error, request_body
from evaluation.judging.providers.protocol import EndpointJudge
from evaluation.network.outcomes import Outcome, excerpt, replace_unstorable
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault

# Key of a batch's metadata that holds the id chosen by its sender.
MARK = "concord_batch"
_PATH = "/v1/chat/completions"
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
# Error codes of lines that the provider did not run.
_NEVER_RUN = frozenset({"batch_expired", "batch_cancelled"})
_ID = re.compile(r"[A-Za-z0-9][\w.:-]{0,199}", re.ASCII)
_MAX_COUNT = 10_000_000
_OK = 200


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """A server's report about a batch.

    ``mark`` is the id chosen by its sender, ``reason`` the code of the first error, ``expires_at`` a Unix time in
    seconds. Missing file ids are empty."""

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
        return self.status in _ENDED


@dataclass(frozen=True, slots=True)
class BatchReplies:
    """Replies of a file by custom id; the first of each id counts. ``unreadable`` counts invalid and repeated lines."""

    replies: dict[str, JudgeReply] = field(default_factory=dict)
    unreadable: int = 0


def request_line(custom_id: str, call: JudgeCall) -> bytes:
    """Encode one line of the request file."""
    line = {"custom_id": custom_id, "method": "POST", "url": _PATH, "body": request_body(call)}
    return orjson.dumps(line) + b"\n"


def creation_body(file_id: str, mark: str) -> bytes:
    """Encode the body that creates a batch."""
    return orjson.dumps(
        {"input_file_id": file_id, "endpoint": _PATH, "completion_window": "24h", "metadata": {MARK: mark}}
    )


def read_id(body: bytes) -> str:
    """Parse the id of a created object; empty if missing or unsafe in a URL."""
    return safe_id(_json(body), "id")


def read_batch(body: bytes) -> BatchStatus | None:
    """Parse a batch; ``None`` for anything else."""
    return _read_status(_json(body))


def read_page(body: bytes) -> tuple[list[BatchStatus], bool] | None:
    """Parse a page of batches and whether there are more; ``None`` for anything else."""
    page = _json(body)
    data = page.get("data") if isinstance(page, Mapping) else None
    if not isinstance(data, list):
        return None
    return [batch for batch in map(_read_status, data) if batch is not None], page.get("has_more") is True


def read_result(line: Mapping[str, Any]) -> JudgeReply | None:
    """Parse the reply of a line like that of a single call; a line that the provider did not run counts as not sent."""
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


def read_lines(
    body: bytes, read_result: Callable[[Mapping[str, Any]], JudgeReply | None] = read_result
) -> BatchReplies:
    """Parse the replies of an output or error file. ``read_result`` parses one line."""
    replies, unreadable = dict[str, JudgeReply](), 0
    for text in body.splitlines():
        if not text.strip():
            continue
        line = _json(text)
        custom_id = line.get("custom_id") if isinstance(line, Mapping) else None
        reply = read_result(line) if isinstance(line, Mapping) else None
        if not isinstance(custom_id, str) or reply is None or custom_id in replies:
            unreadable += 1
            continue
        replies[custom_id] = replace(reply, batch=True)
    return BatchReplies(replies, unreadable)


def _read_status(batch: Any) -> BatchStatus | None:
    provider_id = safe_id(batch, "id")
    status = batch.get("status") if isinstance(batch, Mapping) else None
    if not provider_id or not isinstance(status, str):
        return None
    counts, metadata = _mapping(batch, "request_counts"), _mapping(batch, "metadata")
    errors = _mapping(batch, "errors").get("data")
    first = errors[0] if isinstance(errors, list) and errors else None
    mark, expires = metadata.get(MARK), batch.get("expires_at")
    return BatchStatus(
        provider_id=provider_id,
        status=replace_unstorable(status)[:20],
        mark=mark if isinstance(mark, str) else "",
        output_file=safe_id(batch, "output_file_id"),
        error_file=safe_id(batch, "error_file_id"),
        reason=replace_unstorable(str(first.get("code") or ""))[:100] if isinstance(first, Mapping) else "",
        done=_count(counts.get("completed")),
        failed=_count(counts.get("failed")),
        expires_at=expires if isinstance(expires, int) and 0 < expires < 10**11 else None,
    )


def safe_id(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) and _ID.fullmatch(text) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT else 0


def _mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    member = value.get(name)
    return member if isinstance(member, Mapping) else {}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    # A line nested too deeply raises RecursionError.
    except (ValueError, RecursionError):
        return None


# Size of a reply file: 2,000 lines with log probabilities take about 50 MB.
MAX_REPLY_BYTES = 256_000_000
T = TypeVar("T")
# Pages of the list of batches, newest first.
PAGE_SIZE, MAX_PAGES = 100, 20


class BatchFault(Exception):
    """A failed request; ``reply`` holds its outcome."""

    def __init__(self, reply: JudgeReply) -> None:
        self.reply = reply
        super().__init__(f"{reply.outcome} {reply.detail}".strip())


class BatchClient:
    """Synchronous client for files and batches under the base URL. Use as a context manager.

    A subclass for another provider defines the methods with a request, the request line, ``credentials`` as in
    ``EndpointJudge``, and ``read_error``.

    Every method raises :class:`BatchFault` on failure.

    :raises DomainError: ``origin_invalid``, ``origin_not_allowed`` if the base URL may not be called."""

    def __init__(
        self, *, base_url: str, key: str = "", allowed_origins: Iterable[str], deadlines: Deadlines | None = None
    ) -> None:
        self._base_url = base_url
        self._transport = GuardedTransport(
            base_url,
            **self.credentials(key),
            allowed_origins=allowed_origins,
            deadlines=deadlines,
            max_bytes=MAX_REPLY_BYTES,
        )
        self._loop = asyncio.new_event_loop()

    credentials = staticmethod(EndpointJudge.credentials)
    read_error = staticmethod(read_error)
    request_line = staticmethod(request_line)

    def has_file(self, file_id: str) -> bool:
        """Return whether this client can create a batch of the uploaded file."""
        return True

    def upload(self, lines: bytes) -> str:
        """Upload a file of requests; returns its id."""
        return require(read_id(self._request(self._llm.upload("requests.jsonl", lines, "batch"))))

    def create(self, file_id: str, mark: str) -> BatchStatus:
        """Create a batch of an uploaded file, with a mark by which it can be found."""
        return require(read_batch(self._request(self._llm.post("/batches", creation_body(file_id, mark)))))

    def find(self, mark: str) -> BatchStatus | None:
        """Return the batch with the mark; ``None`` if the server's list does not contain it."""
        after = ""
        for _ in range(MAX_PAGES):
            page = read_page(self._request(self._llm.get(f"/batches?limit={PAGE_SIZE}{after}")))
            if page is None:
                raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, detail="not a list of batches"))
            batches, more = page
            if match := next((batch for batch in batches if batch.mark == mark), None):
                return match
            if not more or not batches:
                return None
            after = f"&after={batches[-1].provider_id}"
        raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, detail="the list of batches has too many pages"))

    def get_status(self, provider_id: str) -> BatchStatus:
        return require(read_batch(self._request(self._llm.get(f"/batches/{provider_id}"))))

    def cancel(self, provider_id: str) -> BatchStatus:
        """Cancel a batch; finished lines remain available."""
        return require(read_batch(self._request(self._llm.post(f"/batches/{provider_id}/cancel", b""))))

    def fetch_replies(self, file_id: str) -> BatchReplies:
        return read_lines(self._request(self._llm.get(f"/files/{file_id}/content")))

    def _request(self, request: Coroutine[Any, Any, HttpResponse]) -> bytes:
        started = time.monotonic()
        try:
            response = self._loop.run_until_complete(request)
        except TransportFault as fault:
            raise BatchFault(JudgeReply(fault.outcome, detail=str(fault)[:200])) from fault
        if response.status in {200, 201}:
            return response.body
        retry_after = retry_after_seconds(response.headers, datetime.now(UTC))
        reply = self.read_error(response.status, response.body)
        raise BatchFault(replace(reply, retry_after=retry_after, elapsed_seconds=time.monotonic() - started))

    def __enter__(self) -> Self:
        self._llm = self._transport.llm(self._base_url)
        return self

    def __exit__(self, *details: Any) -> None:
        self._loop.run_until_complete(self._transport.aclose())
        self._loop.close()


def require(value: T | None) -> T:
    """Return the parsed value, or raise :class:`BatchFault` without one."""
    if not value:
        raise BatchFault(JudgeReply(Outcome.WRONG_CONTENT, http_status=200, detail="unexpected content"))
    return value
