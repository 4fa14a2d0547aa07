"""Randomness of a queue: item keys, where a reviewer starts on the ring, and what else is left to chance.

Everything follows from the queue's stored seed, so that it can be repeated, and nothing from what a judge said.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from random import Random

KEY_BITS = 62  # fits the signed 64-bit integers of both databases
SEED_BITS = 32
APART = 3  # items between two answers to one question, where there are enough others
LOOKED_AT = 50  # items tried for one place, so that a queue about a single question does not take for ever


def new_seed() -> int:
    """A seed for a draw or a queue."""
    return secrets.randbits(SEED_BITS)


def shuffle_keys(seed: int, count: int) -> list[int]:
    """Random keys for so many items."""
    random = Random(f"items {seed}")
    return [random.getrandbits(KEY_BITS) for _ in range(count)]


def kept_apart(questions: Sequence[str]) -> list[int]:
    """The places of a shuffled list in an order in which answers to one question do not follow each other: whoever has
    just read one answer measures the next one by it. Each place in conflict changes with the nearest later one that
    fits; where none does, it stays."""
    order = list(range(len(questions)))
    for i in range(1, len(order)):
        before = {questions[place] for place in order[max(0, i - APART) : i]}
        fits = (j for j in range(i, min(len(order), i + LOOKED_AT)) if questions[order[j]] not in before)
        j = next(fits, i)
        order[i], order[j] = order[j], order[i]
    return order


def ring_offset(seed: int, reviewer_id: int) -> int:
    """Where a reviewer starts on the ring of keys."""
    return _number("offset", seed, reviewer_id) >> (64 - KEY_BITS)


def by_chance(purpose: str, share: float, seed: int, item_id: int, reviewer_id: int) -> bool:
    """Whether this item is among the share of this reviewer's items that chance takes for a purpose."""
    return _number(purpose, seed, item_id, reviewer_id) / 2**64 < share


def repeat_key(seed: int, item_id: int) -> int:
    """The key of a hidden repeat of an item."""
    return _number("again", seed, item_id) >> (64 - KEY_BITS)


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")
