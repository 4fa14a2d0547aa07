"""Files and batches of the server: ``/v1/files`` and ``/v1/batches``, and Anthropic's message batches. Each line is
answered like a single call, by the server's script; the results of batches and files are scripted here."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.judge_server.actions import Action
from tests.judge_server.received import ReceivedRequest

# Anthropic's message batches.
MESSAGES = "/other/messages/batches"
Line = dict[str, Any]
Answer = Callable[[ReceivedRequest, web.Request], Awaitable[web.StreamResponse]]


@dataclass
class StoredBatch:
    """A batch as stored by the server."""

    id: str
    file_id: str
    metadata: Mapping[str, str]
    created_at: float
    expires_at: int = field(default_factory=lambda: int(time.time()) + 86_400)
    status: str = "in_progress"
    output: str = ""
    errors: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    provider: str = "openai"


@dataclass
class Batches:
    """The batches of a server. ``seconds`` is the duration of a batch, ``ending`` its final status (``completed``,
    ``expired``, ``failed``, ``stuck``), and ``max_lines`` the number of answered lines if it expires or is cancelled.
    ``alter`` changes the output lines before they are written. ``faults`` replace the next responses by kind
    (``upload``, ``create``, ``look``, ``list``, ``content``, ``cancel``); those in ``after`` are sent once the action
    is
    done. ``slow`` delays responses after the action, in seconds by kind."""

    answer: Answer
    seconds: float = 0.0
    ending: str = "completed"
    max_lines: int = 10**9
    alter: Callable[[list[Line]], list[Line | str]] = lambda lines: list(lines)
    faults: dict[str, deque[Action]] = field(default_factory=dict)
    after: dict[str, deque[Action]] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    stored: list[StoredBatch] = field(default_factory=list)
    request_counts: Counter[str] = field(default_factory=Counter)
    requests: list[ReceivedRequest] = field(default_factory=list)

    def clear(self) -> None:
        """Reset script, files and batches."""
        defaults = Batches(self.answer)
        for name in defaults.__dataclass_fields__:
            setattr(self, name, getattr(defaults, name))

    def script(self, kind: str, *actions: Action, after_action: bool = False) -> None:
        """Answer the next requests of a kind with these actions, before or after the action is done."""
        (self.after if after_action else self.faults).setdefault(kind, deque()).extend(actions)

    def routes(self, app: web.Application) -> None:
        """Add the routes to the application."""
        for method, path, kind, handler in (
            ("POST", "/v1/files", "upload", self._upload),
            ("GET", "/v1/files/{id}/content", "content", self._content),
            ("POST", "/v1/batches", "create", self._create),
            ("GET", "/v1/batches", "list", self._list),
            ("GET", "/v1/batches/{id}", "look", self._look),
            ("POST", "/v1/batches/{id}/cancel", "cancel", self._cancel),
            ("POST", MESSAGES, "create", self._create_messages),
            ("GET", f"{MESSAGES}/{{id}}", "look", self._look),
            ("GET", f"{MESSAGES}/{{id}}/results", "content", self._results),
            ("POST", f"{MESSAGES}/{{id}}/cancel", "cancel", self._cancel),
        ):
            app.router.add_route(method, path, self._scripted(kind, handler))

    def _scripted(
        self, kind: str, handler: Callable[[web.Request], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(http: web.Request) -> web.StreamResponse:
            self.request_counts[kind] += 1
            empty_request = ReceivedRequest(0, http.path, dict(http.headers), {}, time.monotonic())
            if self.faults.get(kind):
                return await self.faults[kind].popleft()(empty_request, http)
            response = await handler(http)
            await asyncio.sleep(self.slow.get(kind, 0.0))
            return await self.after[kind].popleft()(empty_request, http) if self.after.get(kind) else response

        return handle

    async def _upload(self, http: web.Request) -> web.Response:
        form = await http.post()
        uploaded = form["file"]
        assert form["purpose"] == "batch"
        assert isinstance(uploaded, web.FileField)
        return web.json_response({"id": self._file(uploaded.file.read()), "object": "file", "purpose": "batch"})

    def _file(self, content: bytes) -> str:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return name

    async def _content(self, http: web.Request) -> web.Response:
        content = self.files.get(http.match_info["id"])
        return web.Response(status=404) if content is None else web.Response(body=content)

    async def _create(self, http: web.Request) -> web.Response:
        request_body = await http.json()
        assert request_body["endpoint"] == "/v1/chat/completions"
        assert request_body["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[request_body["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines) > 0
        assert len({line["body"]["model"] for line in lines}) == 1
        batch = StoredBatch(
            f"batch_{len(self.stored) + 1}", request_body["input_file_id"], request_body["metadata"], time.monotonic()
        )
        batch.counts = {"total": len(lines), "completed": 0, "failed": 0}
        self.stored.append(batch)
        return web.json_response(self._batch_json(batch))

    async def _create_messages(self, http: web.Request) -> web.Response:
        """Create a batch in Anthropic's format, which holds the calls themselves."""
        requests = (await http.json())["requests"]
        assert len({entry["custom_id"] for entry in requests}) == len(requests) > 0
        lines = [{"custom_id": entry["custom_id"], "url": "/messages", "body": entry["params"]} for entry in requests]
        batch = StoredBatch(
            f"msgbatch_{len(self.stored) + 1}", self._file(_as_lines(lines)), {}, time.monotonic(), provider="anthropic"
        )
        batch.counts = {"total": len(lines), "completed": 0, "failed": 0}
        self.stored.append(batch)
        return web.json_response(self._batch_json(batch))

    async def _results(self, http: web.Request) -> web.Response:
        """Results in Anthropic's format: one file with all lines."""
        batch = self._batch(http)
        if batch is None:
            return web.json_response({"type": "error", "error": {"type": "not_found_error"}}, status=404)
        content = b"".join(self.files[name] for name in (batch.output, batch.errors) if name)
        lines = [json.loads(line) for line in content.splitlines()]
        return web.Response(body=_as_lines([_message_result(line) for line in lines]))

    async def _list(self, http: web.Request) -> web.Response:
        newest_first = list(reversed(self.stored))
        ids = [batch.id for batch in newest_first]
        start = ids.index(http.query["after"]) + 1 if "after" in http.query else 0
        size = int(http.query.get("limit", 20))
        page = newest_first[start : start + size]
        return web.json_response(
            {"data": [self._batch_json(b) for b in page], "has_more": start + size < len(newest_first)}
        )

    async def _look(self, http: web.Request) -> web.Response:
        batch = self._batch(http)
        if batch is None:
            return web.json_response({"error": {"code": "not_found"}}, status=404)
        if batch.status == "cancelling":
            await self._finish(batch, "cancelled", http)
        elif (
            batch.status == "in_progress"
            and self.ending != "stuck"
            and time.monotonic() - batch.created_at >= self.seconds
        ):
            await self._finish(batch, self.ending, http)
        return web.json_response(self._batch_json(batch))

    async def _cancel(self, http: web.Request) -> web.Response:
        batch = self._batch(http)
        if batch is None:
            return web.json_response({"error": {"code": "not_found"}}, status=404)
        batch.status = "cancelling"
        return web.json_response(self._batch_json(batch))

    def _batch(self, http: web.Request) -> StoredBatch | None:
        return next((batch for batch in self.stored if batch.id == http.match_info["id"]), None)

    async def _finish(self, batch: StoredBatch, status: str, http: web.Request) -> None:
        batch.status = status
        if status == "failed":
            batch.reason = "invalid_json_line"
            return
        lines = [json.loads(line) for line in self.files[batch.file_id].splitlines()]
        answered_count = len(lines) if status == "completed" else min(self.max_lines, len(lines))
        answered = await asyncio.gather(*(self._answer_line(line, http) for line in lines[:answered_count]))
        successes = [line for line in answered if line["response"]["status_code"] == 200]
        failures = [line for line in answered if line["response"]["status_code"] != 200]
        failures += [_unexecuted_line(line, f"batch_{status}") for line in lines[answered_count:]]
        batch.counts |= {"completed": len(successes), "failed": len(failures)}
        output_lines = self.alter(list(successes))
        batch.output = self._file(_as_lines(output_lines)) if output_lines else ""
        batch.errors = self._file(_as_lines(failures)) if failures else ""

    async def _answer_line(self, line: Line, http: web.Request) -> Line:
        request = ReceivedRequest(0, line["url"], {}, line["body"], time.monotonic())
        self.requests.append(request)
        response = await self.answer(request, http)
        assert isinstance(response, web.Response)
        text = response.text or ""
        body = json.loads(text) if text.startswith("{") else text
        response_data = {"status_code": response.status, "request_id": "req", "body": body}
        return {"id": "x", "custom_id": line["custom_id"], "response": response_data, "error": None}

    def _batch_json(self, batch: StoredBatch) -> dict[str, Any]:
        if batch.provider == "anthropic":
            return _message_batch(batch)
        return {
            "id": batch.id,
            "object": "batch",
            "status": batch.status,
            "input_file_id": batch.file_id,
            "output_file_id": batch.output or None,
            "error_file_id": batch.errors or None,
            "errors": {"data": [{"code": batch.reason}]} if batch.reason else None,
            "request_counts": batch.counts,
            "metadata": dict(batch.metadata),
            "expires_at": batch.expires_at,
        }


def _message_batch(batch: StoredBatch) -> dict[str, Any]:
    """The batch in Anthropic's format."""
    status = {"in_progress": "in_progress", "cancelling": "canceling"}.get(batch.status, "ended")
    failed = {"expired": "expired", "cancelled": "canceled"}.get(batch.status, "errored")
    counts = {"processing": 0, "succeeded": batch.counts["completed"], failed: batch.counts["failed"]}
    expires_at = datetime.fromtimestamp(batch.expires_at, UTC).isoformat()
    return {"id": batch.id, "processing_status": status, "request_counts": counts, "expires_at": expires_at}


def _message_result(line: Line) -> Line:
    """A line of results in Anthropic's format."""
    if line["response"] is None:
        kind = {"batch_expired": "expired", "batch_cancelled": "canceled"}[line["error"]["code"]]
        return {"custom_id": line["custom_id"], "result": {"type": kind}}
    succeeded, body = line["response"]["status_code"] == 200, line["response"]["body"]
    result = {"type": "succeeded", "message": body} if succeeded else {"type": "errored", "error": body}
    return {"custom_id": line["custom_id"], "result": result}


def _unexecuted_line(line: Line, code: str) -> Line:
    error = {"code": code, "message": "This request could not be executed in time."}
    return {"id": "x", "custom_id": line["custom_id"], "response": None, "error": error}


def _as_lines(lines: list[Any]) -> bytes:
    return b"".join((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n" for line in lines)
