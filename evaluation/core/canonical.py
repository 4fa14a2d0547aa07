"""Canonical JSON and content hashes: equal content has an equal SHA-256, independent of its spelling in a file.

Also names of versioned objects, and whole numbers from forms, files and URLs."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

import orjson

from evaluation.core.errors import DomainError


def normal_form(value: Any) -> Any:
    """Normalize all texts and mapping keys to NFC; lists keep their order.

    :raises TypeError: for a type unknown to JSON."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return [normal_form(v) for v in value]
    if isinstance(value, dict | Mapping):
        return {normal_form(str(k)): normal_form(v) for k, v in value.items()}
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def canonical_json(value: Any) -> str:
    """Canonical JSON: NFC texts, sorted keys, no white space.

    :raises ValueError: for NaN and infinity."""
    return _encode(normal_form(value))


def canonical_texts(value: Any) -> str:
    """Faster :func:`canonical_json` for values without floats: texts, lists, mappings, integers below 2**63, booleans,
    null.

    :raises TypeError: for other types and numbers, and for invalid Unicode."""
    encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if not encoded.isascii():
        encoded = orjson.dumps(normal_form(value), option=orjson.OPT_SORT_KEYS)
    return encoded.decode()


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "strict")).hexdigest()


def text_hash(value: Any) -> str:
    """Faster :func:`content_hash` for values that :func:`canonical_texts` accepts.

    :raises TypeError: for other values."""
    return hashlib.sha256(canonical_texts(value).encode()).hexdigest()


def normalize_nfc(text: str) -> str:
    """Normalize a text to NFC, the form in which ids and names are compared."""
    return unicodedata.normalize("NFC", text)


MAX_NAME_LENGTH = 200


def clean_name(name: str) -> str:
    """Normalize the name of a question set, system or corpus for storage: NFC, stripped.

    :raises DomainError: ``bad_name`` if it is empty, longer than 200 characters or has control characters."""
    clean = normalize_nfc(name).strip()
    if not clean or len(clean) > MAX_NAME_LENGTH or any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in clean):
        raise DomainError("bad_name", name=clean[:80], limit=MAX_NAME_LENGTH)
    return clean


# More digits may overflow a 64-bit column.
MAX_INT_DIGITS = 18


def parse_int(text: str, digits: int = MAX_INT_DIGITS) -> int | None:
    """Parse ASCII digits, at most ``digits`` of them; ``None`` for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
