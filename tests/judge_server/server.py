"""The server: a thread with its own event loop, a script that decides per call, a log and counts."""

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

from tests.judge_server.actions import FAULTS, Action, fitting
from tests.judge_server.answering import embedding
from tests.judge_server.batches import Batches
from tests.judge_server.received import Received

OTHER = "/other/"  # begins paths of APIs that are not OpenAI's: each is answered as it is scripted
_LARGEST_REQUEST = 50_000_000
_STARTING_SECONDS = 10


class JudgeServer:
    """Serves ``/v1/chat/completions``, ``/v1/embeddings``, ``/v1/batches`` and ``/v1/models`` on 127.0.0.1.

    A call is answered by the next action of :meth:`enqueue`, else by the first rule of :meth:`when` that fits, else
    by a fault drawn with the given shares, else by ``otherwise`` (a valid answer to any schema). The small calls before
    a run are counted and logged apart; only rules of :meth:`when` and ``preflight`` answer them.

    Embeddings have a script of their own: the next action of :meth:`enqueue_embeddings`, else one vector per text, of
    :attr:`vector_of` (decided by text and model unless a test sets it).

    :attr:`batches` takes files and batches; their lines are answered by the same script, and counted apart.
    """

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
        self.otherwise: Action = fitting()
        self.preflight: Action = fitting()
        self.requests: list[Received] = []
        self.preflight_requests: list[Received] = []
        self.calls = 0
        self.preflights = 0
        self.in_flight = 0
        self.peak = 0
        self.drawn: Counter[str] = Counter()
        self.batches = Batches(self._answer_line)
        self._faults = dict(faults or {})
        self._rng = random.Random(seed)
        self._tls = tls
        self._keep_log = keep_log
        self.vector_of: Callable[[str, str], list[float]] = embedding
        self._queue: deque[Action] = deque()
        self._embedding_queue: deque[Action] = deque()
        self._rules: list[tuple[Callable[[Received], bool], Action]] = []
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

    def when(self, fits: Callable[[Received], bool], action: Action) -> None:
        """Answer every call that fits with this action; earlier rules win."""
        self._rules.append((fits, action))

    def behave(self, action: Action) -> None:
        """Do this with every call that is not scripted otherwise, those before a run included."""
        self.otherwise = self.preflight = action

    def reset(self) -> None:
        """Forget script, log and counts."""
        self._queue.clear()
        self._embedding_queue.clear()
        self.vector_of = embedding
        self._rules.clear()
        self.requests.clear()
        self.preflight_requests.clear()
        self.otherwise = self.preflight = fitting()
        self.calls = self.preflights = self.peak = 0
        self.drawn.clear()
        self.batches.clear()

    def start(self) -> None:
        """Listen; ``port`` is the real one afterwards."""
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
        """Counts so far, as ``/control/stats`` gives them."""
        return {
            "calls": self.calls,
            "batches": len(self.batches.made),
            "lines": len(self.batches.requests),
            "preflights": self.preflights,
            "peak": self.peak,
            "in_flight": self.in_flight,
            "faults": dict(self.drawn),
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
        app.router.add_post(f"{OTHER}{{path:.+}}", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/control/stats", self._stats)
        self.batches.routes(app)
        return app

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        due = self._loop.time() + self.latency
        try:
            request = await self._received(http)
            action = self._action(request)
            if self.latency:  # counted from the call's arrival: reading it is part of the judge's time
                request.prepare()
                await asyncio.sleep(due - self._loop.time())
            return await action(request, http)
        except ConnectionResetError:  # the caller hung up in the middle of a body, as it should
            return web.Response()
        finally:
            self.in_flight -= 1

    async def _answer_line(self, request: Received, http: web.Request) -> web.StreamResponse:
        return await self._action(request)(request, http)

    async def _received(self, http: web.Request) -> Received:
        body = await http.json()
        chats = http.path.endswith("/chat/completions") or http.path.startswith(OTHER)
        request = Received(self.calls + chats, http.path, dict(http.headers), body, time.monotonic())
        if request.is_preflight:
            self.preflights += 1
        elif chats:
            self.calls += 1
        if self._keep_log:
            (self.preflight_requests if request.is_preflight else self.requests).append(request)
        return request

    def _action(self, request: Received) -> Action:
        if self._queue and not request.is_preflight:
            return self._queue.popleft()
        for fits, action in self._rules:
            if fits(request):
                return action
        if request.is_preflight:
            return self.preflight
        point = self._rng.random()
        for name, share in self._faults.items():
            if point < share:
                self.drawn[name] += 1
                return FAULTS[name]
            point -= share
        return self.otherwise

    async def _embeddings(self, http: web.Request) -> web.StreamResponse:
        request = await self._received(http)
        if self._embedding_queue:
            return await self._embedding_queue.popleft()(request, http)
        model, given = str(request.body.get("model", "")), request.body.get("input", [])
        texts = [given] if isinstance(given, str) else list(given)
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
