"""Canonical JSON and content hashes: equal content has an equal SHA-256, whatever its spelling in a file. And whole
numbers as addresses and forms send them.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

import orjson


def normal_form(value: Any) -> Any:
    """The value with every text in NFC and every mapping's keys as NFC texts; lists keep their order.

    :raises TypeError: for a type that JSON does not know.
    """
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return [normal_form(v) for v in value]
    if isinstance(value, dict | Mapping):
        return {normal_form(str(k)): normal_form(v) for k, v in value.items()}
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")


def canonical_json(value: Any) -> str:
    """Canonical JSON: NFC texts, sorted keys, no white space, no NaN or infinity (``ValueError``)."""
    return json.dumps(normal_form(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def canonical_texts(value: Any) -> str:
    """The same as :func:`canonical_json`, much faster, for values that hold no floats: texts, lists, mappings, whole
    numbers below 2**63, truth values and null.

    :raises TypeError: for a type or number that it cannot write, and for texts that are no Unicode.
    """
    written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if not written.isascii():
        written = orjson.dumps(normal_form(value), option=orjson.OPT_SORT_KEYS)
    return written.decode()


def content_hash(value: Any) -> str:
    """SHA-256, as 64 hexadecimal digits, of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "strict")).hexdigest()


LONGEST = 18  # digits; more may not fit into a column of 64 bits


def whole_number(text: str, digits: int = LONGEST) -> int | None:
    """The number that the text writes in ASCII digits, at most so many; ``None`` for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
