"""The toy system behind HTTP: ``python -m examples.rag_service [PORT]``.

``POST /ask`` answers JSON, ``POST /stream`` a stream of events, ``GET /ask?q=…`` is the same by address, and
``POST /v1/chat/completions`` is an OpenAI-compatible chat without retrieval. ``POST /fault/NAME`` misbehaves in a named
way, which tests go through.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from examples.retrieval import answer

HANG_SECONDS = 3600.0


class RagService(ThreadingHTTPServer):
    """The service on 127.0.0.1. ``asked`` counts requests by question, ``peak`` how many were out at once; ``fault_of``
    names the fault for a question, ``seconds`` is how long an answer takes."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.asked: Counter[str] = Counter()
        self.headers_seen: list[dict[str, str]] = []
        self.bodies: list[Any] = []
        self.fault_of: Callable[[str, int], str] = lambda question, times: ""
        self.seconds = 0.0
        self.peak = self.out = 0
        self.lock = threading.Lock()
        self.over = threading.Event()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has hung up, as he may."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RagService

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        said = parse_qs(parts.query)
        self._answer({"question": said.get("q", [""])[0], "k": int(said.get("k", ["5"])[0])}, parts.path)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length) or b"{}"), self.path)

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def _answer(self, body: dict[str, Any], path: str) -> None:
        service = self.server
        messages = body.get("messages") or [{}]
        question = str(body.get("question") or messages[-1].get("content") or "")
        with service.lock:
            service.asked[question] += 1
            service.headers_seen.append(dict(self.headers))
            service.bodies.append(body)
            service.out += 1
            service.peak = max(service.peak, service.out)
            fault = service.fault_of(question, service.asked[question])
        try:
            service.over.wait(service.seconds)
            if path.startswith("/fault/") or fault:
                getattr(self, "_" + (fault or path.removeprefix("/fault/")))()
            elif path == "/stream":
                self._stream(answer(question, int(body.get("k", 5))))
            elif path == "/v1/chat/completions":
                self._chat(body, answer(question))
            elif path == "/ask":
                self._json(answer(question, int(body.get("k", 5))))
            else:
                self._json({"error": "unknown path"}, 404)
        finally:
            with service.lock:
                service.out -= 1

    def _send(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, "application/json", json.dumps(value, ensure_ascii=False).encode())

    def _event(self, value: Any) -> None:
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        data = f"data: {said}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _stream(self, told: dict[str, Any]) -> None:
        self._begin_stream()
        self._event({"contexts": told["contexts"]})
        for word in told["answer"].split(" "):
            self._event({"delta": word + " "})
        self._event({"usage": told["usage"], "model": told["model"]})
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _chat(self, body: dict[str, Any], told: dict[str, Any]) -> None:
        if body.get("stream"):
            self._begin_stream()
            for word in told["answer"].split(" "):
                self._event({"choices": [{"delta": {"content": word + " "}}]})
            self._event({"choices": [{"delta": {}, "finish_reason": "stop"}], "model": body.get("model")})
            self._event({"choices": [], "usage": told["usage"]})
            self._event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
            return
        message = {"role": "assistant", "content": told["answer"]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self._json({"model": body.get("model"), "choices": [choice], "usage": told["usage"]})

    # Faults

    def _hang(self) -> None:
        self.server.over.wait(HANG_SECONDS)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.server.over.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _error(self) -> None:
        self._json({"error": "out of order"}, 500)

    def _unauthorised(self) -> None:
        self._json({"error": "who are you?"}, 401)

    def _missing(self) -> None:
        self._json({"error": "no such thing"}, 404)

    def _text(self) -> None:
        self._send(200, "text/plain", b'{"answer": "as text"}')

    def _html(self) -> None:
        self._send(200, "text/html", b"<html><body>Please sign in</body></html>")

    def _no_json(self) -> None:
        self._send(200, "application/json", b'{"answer": "cut o')

    def _huge(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(50):
            self.wfile.write(b" " * 1_000_000)

    def _redirect(self) -> None:
        self._send(307, "text/plain", b"", Location=f"{self.server.origin}/ask")

    def _disconnect(self) -> None:
        self._begin_stream()
        self._event({"delta": "The ans"})
        self.close_connection = True

    def _limit(self) -> None:
        self._send(429, "application/json", b"{}", Retry_After="0.2")

    def _long_limit(self) -> None:
        self._send(429, "application/json", b"{}", Retry_After="300")

    def _no_answer(self) -> None:
        self._json({"contexts": []})

    def _empty(self) -> None:
        self._json({"answer": " ", "contexts": []})

    def _number(self) -> None:
        self._json({"answer": 42, "contexts": []})

    def _reported(self) -> None:
        self._json({"answer": None, "error": "the index is being built"})


def main(arguments: list[str]) -> None:
    """Serve until interrupted."""
    with RagService(int(arguments[0]) if arguments else 8010) as service:
        print(f"the toy system answers at {service.origin}/ask", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
