"""The server: a thread with its own event loop, a script that selects actions, a log and counts."""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.judge_server.actions import FAULTS, Action, valid_reply
from tests.judge_server.answering import embedding
from tests.judge_server.batches import Batches
from tests.judge_server.received import ReceivedRequest

OTHER = "/other/"  # begins paths of APIs that are not OpenAI's: each is answered as it is scripted
_LARGEST_REQUEST = 50_000_000
_STARTING_SECONDS = 10


class JudgeServer:
    """Serves ``/v1/chat/completions``, ``/v1/embeddings``, ``/v1/batches`` and ``/v1/models`` on 127.0.0.1.

    A call is answered by the next action of :meth:`enqueue`, else by the first matching rule of :meth:`when`, else
    by a fault drawn with the given shares, else by ``otherwise`` (a valid reply to any schema). Preflight calls are
    counted and logged separately; only rules of :meth:`when` and ``preflight`` answer them.

    Calls for embeddings are answered by the next action of :meth:`enqueue_embeddings`, else with one vector per text
    from
    :attr:`vector_of` (by default determined by text and model).

    :attr:`batches` takes files and batches; their lines are answered by the same script and counted separately."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        latency: float = 0.0,
        faults: Mapping[str, float] | None = None,
        seed: int = 0,
        tls: ssl.SSLContext | None = None,
        keep_log: bool = True,
    ) -> None:
        self.host, self.port, self.latency = host, port, latency
        self.otherwise: Action = valid_reply()
        self.preflight: Action = valid_reply()
        self.requests: list[ReceivedRequest] = []
        self.preflight_requests: list[ReceivedRequest] = []
        self.calls = 0
        self.preflights = 0
        self.in_flight = 0
        self.peak = 0
        self.drawn_faults: Counter[str] = Counter()
        self.batches = Batches(self._answer_line)
        self._faults = dict(faults or {})
        self._rng = random.Random(seed)
        self._tls = tls
        self._keep_log = keep_log
        self.vector_of: Callable[[str, str], list[float]] = embedding
        self._queue: deque[Action] = deque()
        self._embedding_queue: deque[Action] = deque()
        self._rules: list[tuple[Callable[[ReceivedRequest], bool], Action]] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="judge-server", daemon=True)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL of the API."""
        return f"{self.origin}/v1"

    def enqueue(self, *actions: Action) -> None:
        """Answer the next calls with these actions, one each."""
        self._queue.extend(actions)

    def enqueue_embeddings(self, *actions: Action) -> None:
        """Answer the next calls for embeddings with these actions, one each."""
        self._embedding_queue.extend(actions)

    @property
    def embedded(self) -> list[list[str]]:
        """The texts of every call for embeddings, in the order of the calls."""
        return [request.body["input"] for request in self.requests if request.path.endswith("/embeddings")]

    def when(self, matches: Callable[[ReceivedRequest], bool], action: Action) -> None:
        """Answer every matching call with this action; earlier rules take precedence."""
        self._rules.append((matches, action))

    def behave(self, action: Action) -> None:
        """Use this action for all calls that are not otherwise scripted, preflight calls included."""
        self.otherwise = self.preflight = action

    def reset(self) -> None:
        """Clear script, log and counts."""
        self._queue.clear()
        self._embedding_queue.clear()
        self.vector_of = embedding
        self._rules.clear()
        self.requests.clear()
        self.preflight_requests.clear()
        self.otherwise = self.preflight = valid_reply()
        self.calls = self.preflights = self.peak = 0
        self.drawn_faults.clear()
        self.batches.clear()

    def start(self) -> None:
        """Start listening and set ``port`` to the actual port."""
        self._thread.start()
        if not self._ready.wait(_STARTING_SECONDS):
            raise RuntimeError("the judge server did not start")

    def stop(self) -> None:
        """Close every connection and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stats(self) -> dict[str, Any]:
        """Counts so far, as returned by ``/control/stats``."""
        return {
            "calls": self.calls,
            "batches": len(self.batches.stored),
            "lines": len(self.batches.requests),
            "preflights": self.preflights,
            "peak": self.peak,
            "in_flight": self.in_flight,
            "faults": dict(self.drawn_faults),
        }

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self._app(), handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, self.host, self.port, ssl_context=self._tls, backlog=1024)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_post("/openai/deployments/{model}/chat/completions", self._chat)
        app.router.add_post("/openai/deployments/{model}/embeddings", self._embeddings)
        # Before the paths of other APIs, which include those of their batches.
        self.batches.routes(app)
        app.router.add_post(f"{OTHER}{{path:.+}}", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/control/stats", self._stats)
        return app

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        answer_at = self._loop.time() + self.latency
        try:
            request = await self._receive(http)
            action = self._action(request)
            if self.latency:  # counted from the call's arrival: reading it is part of the judge's time
                request.prepare()
                await asyncio.sleep(answer_at - self._loop.time())
            return await action(request, http)
        except ConnectionResetError:  # the caller hung up in the middle of a body, as it should
            return web.Response()
        finally:
            self.in_flight -= 1

    async def _answer_line(self, request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        return await self._action(request)(request, http)

    async def _receive(self, http: web.Request) -> ReceivedRequest:
        body = await http.json()
        is_chat = http.path.endswith("/chat/completions") or http.path.startswith(OTHER)
        request = ReceivedRequest(self.calls + is_chat, http.path, dict(http.headers), body, time.monotonic())
        if request.is_preflight:
            self.preflights += 1
        elif is_chat:
            self.calls += 1
        if self._keep_log:
            (self.preflight_requests if request.is_preflight else self.requests).append(request)
        return request

    def _action(self, request: ReceivedRequest) -> Action:
        if self._queue and not request.is_preflight:
            return self._queue.popleft()
        for matches, action in self._rules:
            if matches(request):
                return action
        if request.is_preflight:
            return self.preflight
        point = self._rng.random()
        for name, share in self._faults.items():
            if point < share:
                self.drawn_faults[name] += 1
                return FAULTS[name]
            point -= share
        return self.otherwise

    async def _embeddings(self, http: web.Request) -> web.StreamResponse:
        request = await self._receive(http)
        if self._embedding_queue:
            return await self._embedding_queue.popleft()(request, http)
        model, raw_input = str(request.body.get("model", "")), request.body.get("input", [])
        texts = [raw_input] if isinstance(raw_input, str) else list(raw_input)
        data = [
            {"object": "embedding", "index": i, "embedding": self.vector_of(text, model)}
            for i, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return web.json_response({"object": "list", "model": request.body.get("model"), "data": data, "usage": usage})

    async def _models(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [{"id": "local-judge", "object": "model"}]})

    async def _stats(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(self.stats())
