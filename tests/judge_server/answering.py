"""Valid answers for any schema, determined by the hash of the request."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.judge_server.received import ReceivedRequest


def answer(request: ReceivedRequest) -> str:
    """JSON text of a value that matches the request's schema; a plain sentence without a schema."""
    schema = request.schema
    if schema is None:
        return "Noted."
    return json.dumps(_value(schema, request.digest, "reply"), ensure_ascii=False)


def _value(schema: dict[str, Any], digest: bytes, path: str) -> Any:
    draw = sum(digest) + sum(path.encode()) * 7
    if "enum" in schema:
        return schema["enum"][draw % len(schema["enum"])]
    kind = schema.get("type", "string")
    if kind == "object":
        return {name: _value(part, digest, f"{path}.{name}") for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_value(schema.get("items", {}), digest, f"{path}.{i}") for i in range(draw % 3 + 1)]
    if kind in {"integer", "number"}:
        low, high = schema.get("minimum", 0), schema.get("maximum", 1)
        return low + draw % (high - low + 1) if kind == "integer" else low + (high - low) * (draw % 101) / 100
    return bool(draw % 2) if kind == "boolean" else f"Scripted reason {draw % 1000}."


_SCORES = re.compile(r'"(\w+)": ?\{"reason": ?"(?:[^"\\]|\\.)*", ?"score": ?(\d)')
_DEFAULT_CHANCE = 0.99  # of a token that no chances are given for


def token_logprobs(text: str, top: int, chances: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """``logprobs.content`` of a text. Words and single digits are tokens; other alphabets are cut within characters, as
    tokenisers do. Positions of scores have up to ``top`` alternatives, by metric."""
    chances_by_position = {match.start(2): chances[match[1]] for match in _SCORES.finditer(text) if match[1] in chances}
    chances_by_offset = {len(text[:at].encode()): level_chances for at, level_chances in chances_by_position.items()}
    tokens, at = [], 0
    for token_bytes in _token_bytes(text):
        token_text = token_bytes.decode("utf-8", "replace")
        token_chances = chances_by_offset.get(at, {token_text: _DEFAULT_CHANCE})
        likeliest = sorted(token_chances.items(), key=lambda pair: -pair[1])[:top]
        alternatives = [_alternative(name, chance) for name, chance in likeliest]
        token_entry = {
            "token": token_text,
            "logprob": math.log(token_chances.get(token_text, _DEFAULT_CHANCE)),
            "bytes": list(token_bytes),
        }
        tokens.append({**token_entry, "top_logprobs": alternatives})
        at += len(token_bytes)
    return tokens


def _alternative(text: str, chance: float) -> dict[str, Any]:
    return {"token": text, "logprob": math.log(chance), "bytes": list(text.encode())}


def _token_bytes(text: str) -> Iterator[bytes]:
    for match in re.findall(r"[A-Za-z]+|[\x00-\x7f]|[^\x00-\x7f]+", text):
        data = match.encode()
        step = len(data) if match.isascii() else 2
        yield from (data[i : i + step] for i in range(0, len(data), step))


def embedding(text: str, model: str, size: int = 8) -> list[float]:
    """A unit vector determined by text and model."""
    digest = hashlib.sha256(f"{model}\n{text}".encode()).digest()
    parts = [byte - 127.5 for byte in digest[:size]]
    norm = math.sqrt(sum(part * part for part in parts))
    return [part / norm for part in parts]
