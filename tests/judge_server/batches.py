"""Files and batches of the server: ``/v1/files`` and ``/v1/batches``, scripted. Each line is answered as a call of its
own would be, by the server's script; what becomes of the batch and its files is scripted here."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.judge_server.actions import Action
from tests.judge_server.received import Received

Line = dict[str, Any]
Answer = Callable[[Received, web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Made:
    """A batch as the server has it."""

    id: str
    file_id: str
    metadata: Mapping[str, str]
    at: float
    expires_at: int = field(default_factory=lambda: int(time.time()) + 86_400)
    status: str = "in_progress"
    output: str = ""
    errors: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass
class Batches:
    """The batches of a server. ``seconds`` is how long one takes, ``ending`` how it ends (``completed``, ``expired``,
    ``failed``, ``stuck``), ``most`` how many lines are answered before one that expires or is cancelled ends.
    ``alter`` changes the lines of the output before they are written. ``faults`` are answered in place of the next
    requests of their kind: ``upload``, ``create``, ``look``, ``list``, ``content``, ``cancel``; a fault in ``after`` is
    answered once the thing was done. ``slow`` holds answers back for so many seconds once it was done, by kind."""

    answer: Answer
    seconds: float = 0.0
    ending: str = "completed"
    most: int = 10**9
    alter: Callable[[list[Line]], list[Line | str]] = lambda lines: list(lines)
    faults: dict[str, deque[Action]] = field(default_factory=dict)
    after: dict[str, deque[Action]] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    requests: list[Received] = field(default_factory=list)

    def clear(self) -> None:
        """Forget script, files and batches."""
        fresh = Batches(self.answer)
        for name in fresh.__dataclass_fields__:
            setattr(self, name, getattr(fresh, name))

    def script(self, kind: str, *actions: Action, done: bool = False) -> None:
        """Answer the next requests of a kind so, having done what was asked for or not."""
        (self.after if done else self.faults).setdefault(kind, deque()).extend(actions)

    def routes(self, app: web.Application) -> None:
        """Where requests arrive."""
        for method, path, kind, handler in (
            ("POST", "/v1/files", "upload", self._upload),
            ("GET", "/v1/files/{id}/content", "content", self._content),
            ("POST", "/v1/batches", "create", self._create),
            ("GET", "/v1/batches", "list", self._list),
            ("GET", "/v1/batches/{id}", "look", self._look),
            ("POST", "/v1/batches/{id}/cancel", "cancel", self._cancel),
        ):
            app.router.add_route(method, path, self._scripted(kind, handler))

    def _scripted(
        self, kind: str, handler: Callable[[web.Request], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(http: web.Request) -> web.StreamResponse:
            self.asked[kind] += 1
            nothing = Received(0, http.path, dict(http.headers), {}, time.monotonic())
            if self.faults.get(kind):
                return await self.faults[kind].popleft()(nothing, http)
            response = await handler(http)
            await asyncio.sleep(self.slow.get(kind, 0.0))
            return await self.after[kind].popleft()(nothing, http) if self.after.get(kind) else response

        return handle

    async def _upload(self, http: web.Request) -> web.Response:
        form = await http.post()
        given = form["file"]
        assert form["purpose"] == "batch"
        assert isinstance(given, web.FileField)
        return web.json_response({"id": self._file(given.file.read()), "object": "file", "purpose": "batch"})

    def _file(self, content: bytes) -> str:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return name

    async def _content(self, http: web.Request) -> web.Response:
        content = self.files.get(http.match_info["id"])
        return web.Response(status=404) if content is None else web.Response(body=content)

    async def _create(self, http: web.Request) -> web.Response:
        asked = await http.json()
        assert asked["endpoint"] == "/v1/chat/completions"
        assert asked["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines) > 0
        assert len({line["body"]["model"] for line in lines}) == 1
        batch = Made(f"batch_{len(self.made) + 1}", asked["input_file_id"], asked["metadata"], time.monotonic())
        batch.counts = {"total": len(lines), "completed": 0, "failed": 0}
        self.made.append(batch)
        return web.json_response(self._shown(batch))

    async def _list(self, http: web.Request) -> web.Response:
        newest = list(reversed(self.made))
        ids = [batch.id for batch in newest]
        start = ids.index(http.query["after"]) + 1 if "after" in http.query else 0
        size = int(http.query.get("limit", 20))
        page = newest[start : start + size]
        return web.json_response({"data": [self._shown(b) for b in page], "has_more": start + size < len(newest)})

    async def _look(self, http: web.Request) -> web.Response:
        batch = self._batch(http)
        if batch is None:
            return web.json_response({"error": {"code": "not_found"}}, status=404)
        if batch.status == "cancelling":
            await self._finish(batch, "cancelled", http)
        elif batch.status == "in_progress" and self.ending != "stuck" and time.monotonic() - batch.at >= self.seconds:
            await self._finish(batch, self.ending, http)
        return web.json_response(self._shown(batch))

    async def _cancel(self, http: web.Request) -> web.Response:
        batch = self._batch(http)
        if batch is None:
            return web.json_response({"error": {"code": "not_found"}}, status=404)
        batch.status = "cancelling"
        return web.json_response(self._shown(batch))

    def _batch(self, http: web.Request) -> Made | None:
        return next((batch for batch in self.made if batch.id == http.match_info["id"]), None)

    async def _finish(self, batch: Made, status: str, http: web.Request) -> None:
        batch.status = status
        if status == "failed":
            batch.reason = "invalid_json_line"
            return
        lines = [json.loads(line) for line in self.files[batch.file_id].splitlines()]
        most = len(lines) if status == "completed" else min(self.most, len(lines))
        done = await asyncio.gather(*(self._answered(line, http) for line in lines[:most]))
        good = [line for line in done if line["response"]["status_code"] == 200]
        bad = [line for line in done if line["response"]["status_code"] != 200]
        bad += [_never_run(line, f"batch_{status}") for line in lines[most:]]
        batch.counts |= {"completed": len(good), "failed": len(bad)}
        written = self.alter(list(good))
        batch.output = self._file(_as_lines(written)) if written else ""
        batch.errors = self._file(_as_lines(bad)) if bad else ""

    async def _answered(self, line: Line, http: web.Request) -> Line:
        request = Received(0, line["url"], {}, line["body"], time.monotonic())
        self.requests.append(request)
        response = await self.answer(request, http)
        assert isinstance(response, web.Response)
        text = response.text or ""
        body = json.loads(text) if text.startswith("{") else text
        told = {"status_code": response.status, "request_id": "req", "body": body}
        return {"id": "x", "custom_id": line["custom_id"], "response": told, "error": None}

    def _shown(self, batch: Made) -> dict[str, Any]:
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


def _never_run(line: Line, code: str) -> Line:
    error = {"code": code, "message": "This request could not be executed in time."}
    return {"id": "x", "custom_id": line["custom_id"], "response": None, "error": error}


def _as_lines(lines: list[Any]) -> bytes:
    return b"".join((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n" for line in lines)
