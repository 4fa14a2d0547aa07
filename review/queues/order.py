"""Randomness of a queue: item keys, where a reviewer starts on the ring, and who is shown the judge by chance.

Everything follows from the queue's stored seed, so that it can be repeated, and nothing from what a judge said.
"""

from __future__ import annotations

import hashlib
import secrets
from random import Random

KEY_BITS = 62  # fits the signed 64-bit integers of both databases
SEED_BITS = 32


def new_seed() -> int:
    """A seed for a draw or a queue."""
    return secrets.randbits(SEED_BITS)


def shuffle_keys(seed: int, count: int) -> list[int]:
    """Random keys for so many items."""
    random = Random(f"items {seed}")
    return [random.getrandbits(KEY_BITS) for _ in range(count)]


def ring_offset(seed: int, reviewer_id: int) -> int:
    """Where a reviewer starts on the ring of keys."""
    return _number("offset", seed, reviewer_id) >> (64 - KEY_BITS)


def by_chance(share: float, seed: int, item_id: int, reviewer_id: int) -> bool:
    """Whether this reviewer is shown the judge for this item although they do not differ."""
    return _number("reveal", seed, item_id, reviewer_id) / 2**64 < share


def repeated_by_chance(share: float, seed: int, item_id: int, reviewer_id: int) -> bool:
    """Whether this item comes to this reviewer again."""
    return _number("repeat", seed, item_id, reviewer_id) / 2**64 < share


def repeat_key(seed: int, item_id: int) -> int:
    """The key of a hidden repeat of an item."""
    return _number("again", seed, item_id) >> (64 - KEY_BITS)


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")
