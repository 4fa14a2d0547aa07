"""Message batches of Anthropic: one request creates a batch, without a file and without a mark to find it by.

This module does not import Django."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

import orjson

from contrib.batches.client import BatchClient, BatchFault, BatchReplies, BatchStatus, read_lines, require, safe_id
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.providers.anthropic import AnthropicJudge, read_message, read_message_error, request_body
from evaluation.judging.providers.protocol import member
from evaluation.network.outcomes import MAX_TOKENS, Outcome, read_count, read_json
from evaluation.network.transport import HttpResponse

_PATH = "/messages/batches"
_NEVER_RUN = frozenset({"canceled", "expired"})


def read_batch(body: bytes) -> BatchStatus | None:
    """Parse a batch; ``None`` for anything else. An ended batch is named by its lines: one that did not run makes it
    ``cancelled`` or ``expired``."""
    batch = read_json(body)
    provider_id, status, counts = (
        safe_id(batch, "id"),
        member(batch, "processing_status"),
        member(batch, "request_counts"),
    )
    if not provider_id or not isinstance(status, str):
        return None
    count = {
        name: read_count(member(counts, name), MAX_TOKENS) or 0
        for name in ("succeeded", "errored", "canceled", "expired")
    }
    if status == "ended":
        status = "cancelled" if count["canceled"] else "expired" if count["expired"] else "completed"
    return BatchStatus(
        provider_id=provider_id,
        # The names of a batch that continues must not be those of one that ended.
        status=status if member(batch, "processing_status") == "ended" else "in_progress",
        output_file=provider_id,
        done=count["succeeded"],
        failed=sum(count.values()) - count["succeeded"],
        expires_at=_unix_time(member(batch, "expires_at")),
    )


def _unix_time(text: Any) -> int | None:
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except (TypeError, ValueError, OverflowError):
        return None


def read_result(line: Mapping[str, Any]) -> JudgeReply | None:
    """Parse a line of results like a single reply; a line that did not run counts as not sent."""
    result = line.get("result")
    kind = member(result, "type")
    if kind == "succeeded":
        return read_message(json.dumps(member(result, "message")).encode())
    if kind == "errored":
        return replace(read_message_error(200, json.dumps(member(result, "error")).encode()), http_status=None)
    return JudgeReply(Outcome.NOT_SENT, raw=str(kind)) if kind in _NEVER_RUN else None


class AnthropicBatchClient(BatchClient):
    """Client for message batches. The calls stay in memory until the batch is created, so another client cannot create
    it."""

    read_error = staticmethod(read_message_error)
    credentials = staticmethod(AnthropicJudge.credentials)

    @staticmethod
    def request_line(custom_id: str, call: JudgeCall) -> bytes:
        return orjson.dumps({"custom_id": custom_id, "params": request_body(call)}) + b"\n"

    def __enter__(self) -> Self:
        self._files: dict[str, bytes] = {}
        return self

    def upload(self, lines: bytes) -> str:
        """Keep the calls for :meth:`create`."""
        file_id = hashlib.sha256(lines).hexdigest()
        self._files[file_id] = lines
        return file_id

    def has_file(self, file_id: str) -> bool:
        return file_id in self._files

    def create(self, file_id: str, mark: str) -> BatchStatus:
        body = b'{"requests":[' + b",".join(self._files[file_id].splitlines()) + b"]}"
        return require(read_batch(self._request(self._send("POST", _PATH, body))))

    def find(self, mark: str) -> BatchStatus | None:
        """Fail: batches carry no mark of their sender."""
        raise BatchFault(JudgeReply(Outcome.NOT_FOUND, detail="batches have no mark"))

    def get_status(self, provider_id: str) -> BatchStatus:
        return require(read_batch(self._request(self._send("GET", f"{_PATH}/{provider_id}"))))

    def cancel(self, provider_id: str) -> BatchStatus:
        return require(read_batch(self._request(self._send("POST", f"{_PATH}/{provider_id}/cancel"))))

    def fetch_replies(self, file_id: str) -> BatchReplies:
        return read_lines(self._request(self._send("GET", f"{_PATH}/{file_id}/results")), read_result)

    def _send(self, method: str, path: str, body: bytes = b"") -> Coroutine[Any, Any, HttpResponse]:
        return self._transport.request(method, self._base_url.rstrip("/") + path, body)
