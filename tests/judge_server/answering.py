"""Valid answers for any schema, decided by the hash of the request alone."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from tests.judge_server.received import Received


def answer(request: Received) -> str:
    """The JSON text of a value that fits the request's schema; a plain sentence where it asks for none."""
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


def embedding(text: str, model: str, size: int = 8) -> list[float]:
    """A unit vector decided by text and model."""
    digest = hashlib.sha256(f"{model}\n{text}".encode()).digest()
    parts = [byte - 127.5 for byte in digest[:size]]
    norm = math.sqrt(sum(part * part for part in parts))
    return [part / norm for part in parts]
