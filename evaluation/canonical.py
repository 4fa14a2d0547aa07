"""Canonical JSON and content hashes: equal content has an equal SHA-256, whatever its spelling in a file."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any


def normal_form(value: Any) -> Any:
    """The value with every text in NFC and every mapping's keys as NFC texts; lists keep their order.

    :raises TypeError: for a type that JSON does not know.
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {unicodedata.normalize("NFC", str(k)): normal_form(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [normal_form(v) for v in value]
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")


def canonical_json(value: Any) -> str:
    """Canonical JSON: NFC texts, sorted keys, no white space, no NaN or infinity (``ValueError``)."""
    return json.dumps(normal_form(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def content_hash(value: Any) -> str:
    """SHA-256, as 64 hexadecimal digits, of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "strict")).hexdigest()
