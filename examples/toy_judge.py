"""A toy judge for the demo: ``python examples/toy_judge.py [PORT]``, OpenAI-compatible, standard library only.

It understands nothing. By the shipped prompt it takes long answers for good ones: one level for every eight words. If
the prompt says "compare with the expected answer" (or "기대 답변과 비교"), it looks for the figures of the expected
answer, or for its words where it has none, and gives a level by the share that the answer contains. So a better prompt
makes a better judge, which the calibration of the demo can show. It is deterministic and still errs: it cannot tell
that an answer takes the right figures back, or adds an invented claim. Its model name says that it is a toy, whatever
model is requested."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "toy-word-counter-1"
PORT = 8011
PHRASES = ("compare with the expected answer", "기대 답변과 비교")
WORDS_PER_LEVEL = 8
_WORD = re.compile(r"\w+(?:[.,]\w+)*%?")
_BLOCK = re.compile(r"^BEGIN (\w+) (\w+)\n(.*?)\nEND \1 \2$", re.MULTILINE | re.DOTALL)


def share_of_levels(prompt: str, blocks: dict[str, Any]) -> tuple[float, str]:
    """Place of the answer on any scale, from 0 to 1, and the reason."""
    words = _WORD.findall(str(blocks.get("answer", "")).casefold())
    expected = _WORD.findall(" ".join(map(str, blocks.get("reference", []))).casefold())
    if expected and any(phrase in prompt.casefold() for phrase in PHRASES):
        facts = {word for word in expected if word[0].isdigit()} or set(expected)
        present = facts & set(words)
        return len(present) / len(facts), f"Toy judge: {len(present)} of {len(facts)} expected facts are in the answer."
    return min(1.0, len(words) / (4 * WORDS_PER_LEVEL)), f"Toy judge: the answer has {len(words)} words."


def verdict(schema: dict[str, Any], share: float, reason: str) -> Any:
    """A value of the JSON schema with the share as its place on every scale and the reason as its text."""
    if "enum" in schema:
        values = schema["enum"]
        return values[round(share * (len(values) - 1))]
    if schema.get("type") == "object":
        return {name: verdict(part, share, reason) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return []
    if schema.get("type") in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 1)
        value = low + share * (high - low)
        return round(value) if schema["type"] == "integer" else value
    return share >= 0.5 if schema.get("type") == "boolean" else reason


def complete(body: dict[str, Any]) -> dict[str, Any]:
    """The chat completion for a request with a JSON schema."""
    messages = [str(message.get("content", "")) for message in body.get("messages", [])]
    blocks = {name: json.loads(text) for name, _, text in _BLOCK.findall("\n".join(messages))}
    prompt = " ".join(_BLOCK.sub("", "\n".join(messages)).split())
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {"type": "string"})
    content = json.dumps(verdict(schema, *share_of_levels(prompt, blocks)), ensure_ascii=False)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    tokens_in, tokens_out = len(" ".join(messages).split()), len(content.split())
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return {"object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        if "response_format" in body and body["response_format"].get("type") != "json_schema":
            self._send({"error": {"message": "The toy judge only takes JSON schemas.", "code": "unsupported"}}, 400)
        else:
            self._send(complete(body))

    def log_message(self, *args: Any) -> None:
        """Log nothing."""

    def _send(self, value: Any, status: int = 200) -> None:
        content = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class ToyJudge(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = PORT) -> None:
        super().__init__(("127.0.0.1", port), _Handler)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        ToyJudge(int(sys.argv[1]) if sys.argv[1:] else PORT).serve_forever()
