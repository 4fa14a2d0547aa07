"""Texts to be embedded: how they are told apart, what language they are in, and how many go into one call."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

MOST_TEXTS = 64
MOST_CHARACTERS = 100_000  # of one call, unless a single text is longer
_KOREAN_SHARE = 0.1


def text_hash(text: str) -> str:
    """SHA-256 of the text in NFC, as 64 hexadecimal digits: what its embedding is kept under."""
    return hashlib.sha256(unicodedata.normalize("NFC", text).encode("utf-8", "replace")).hexdigest()


def is_korean(text: str) -> bool:
    """Whether at least a tenth of the letters are Hangul."""
    letters = [character for character in unicodedata.normalize("NFC", text) if character.isalpha()]
    hangul = sum("가" <= c <= "힣" or "ㄱ" <= c <= "ㅣ" for c in letters)
    return bool(letters) and hangul / len(letters) >= _KOREAN_SHARE


def batches(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Distinct texts in calls of at most 64 texts and 100,000 characters."""
    batch: list[str] = []
    characters = 0
    for text in dict.fromkeys(texts):
        if batch and (len(batch) >= MOST_TEXTS or characters + len(text) > MOST_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch
