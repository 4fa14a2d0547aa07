"""Canonical JSON and content hashes: equal content has an equal SHA-256, whatever its spelling in a file. And names of
what has versions, and whole numbers, as they come from forms, files and addresses.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

import orjson

from evaluation.core.errors import Refused


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


_written = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def canonical_json(value: Any) -> str:
    """Canonical JSON: NFC texts, sorted keys, no white space, no NaN or infinity (``ValueError``)."""
    return _written(normal_form(value))


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


def text_hash(value: Any) -> str:
    """The same as :func:`content_hash`, much faster, for what :func:`canonical_texts` can write.

    :raises TypeError: as that does.
    """
    return hashlib.sha256(canonical_texts(value).encode()).hexdigest()


def composed(text: str) -> str:
    """A text as ids and names are compared: in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", text)


LONGEST_NAME = 200


def clean_name(name: str) -> str:
    """A name of a set, system or corpus as it is stored: composed, without surrounding white space.

    :raises Refused: ``bad_name`` when it is empty, longer than 200 characters or holds control characters.
    """
    clean = composed(name).strip()
    if not clean or len(clean) > LONGEST_NAME or any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in clean):
        raise Refused("bad_name", name=clean[:80], limit=LONGEST_NAME)
    return clean


LONGEST = 18  # digits; more may not fit into a column of 64 bits


def whole_number(text: str, digits: int = LONGEST) -> int | None:
    """The number that the text writes in ASCII digits, at most so many; ``None`` for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
