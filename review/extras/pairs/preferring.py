"""People rating pairs: everybody in an order of their own, with sides by chance, one decision for a pair."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from django.db import transaction

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.models import User
from review.models import Pair, PairMember, PairSet, Preference

LEAST, MOST = -2, 2
LONGEST_REASON = 5000


@dataclass(frozen=True, slots=True)
class Card:
    """A pair as one person sees it: ``swapped`` puts B on the left. ``chosen`` is the person's preference so far, from
    -2 (left much better) to 2 (right much better), and ``stands`` the primary key of it, 0 without one."""

    pair: Pair
    swapped: bool
    chosen: float | None
    reason: str
    rated: int
    pairs: int
    stands: int = 0

    @property
    def left(self) -> str:
        """The answer on the left."""
        return self.pair.text_b if self.swapped else self.pair.text_a

    @property
    def right(self) -> str:
        """The answer on the right."""
        return self.pair.text_a if self.swapped else self.pair.text_b


def card_of(found: PairSet, person: User, pair_id: int | None = None) -> Card | None:
    """The pair asked for, else the person's next one without a preference; ``None`` when all are rated (or there is no
    such pair). Two queries."""
    pairs = sorted(found.pairs.all(), key=lambda pair: _number("order", found.seed, pair.pk, person.pk))
    given = newest_of(found, person)
    chosen = next((p for p in pairs if (p.pk == pair_id if pair_id else p.pk not in given)), None)
    if chosen is None:
        return None
    swapped, mine = is_swapped(found, chosen, person), given.get(chosen.pk)
    value = None if mine is None or mine.value is None else (-mine.value if swapped else mine.value)
    stands = mine.pk if mine else 0
    return Card(chosen, swapped, value, mine.reason if mine else "", len(given), len(pairs), stands)


def newest_of(found: PairSet, person: User) -> dict[int, Preference]:
    """The person's preferences by pair."""
    rows = Preference.objects.filter(pair__pair_set=found, rater=person).order_by("round", "id")
    return {row.pair_id: row for row in rows}


def last_rated(found: PairSet, person: User) -> int | None:
    """The pair the person rated last, to change their mind."""
    rows = Preference.objects.filter(pair__pair_set=found, rater=person).order_by("-id")
    return rows.values_list("pair_id", flat=True).first()


def is_swapped(found: PairSet, pair: Pair, person: User) -> bool:
    """Whether this person sees B on the left: by chance, and the same each time."""
    return bool(_number("side", found.seed, pair.pk, person.pk) & 1)


@transaction.atomic
def prefer(
    found: PairSet, pair: Pair, person: User, value: int, *, reason: str = "", seconds: float | None = None
) -> Preference:
    """Store a preference as it was seen: -2 (left much better) to 2 (right much better). The same one twice is one
    decision; another one is a new row that counts instead.

    :raises Refused: ``pairs_closed``; ``preference_range``; ``reason_too_long``.
    """
    PairMember.objects.select_for_update().get(pair_set=found, reviewer=person)  # a person's requests take turns
    if PairSet.objects.values_list("closed_at", flat=True).get(pk=found.pk) is not None:
        raise Refused("pairs_closed")
    if not LEAST <= value <= MOST:
        raise Refused("preference_range")
    if len(reason) > LONGEST_REASON:
        raise Refused("reason_too_long", length=len(reason), limit=LONGEST_REASON)
    swapped = is_swapped(found, pair, person)
    kept = float(-value if swapped else value)
    before = Preference.objects.filter(pair=pair, rater=person).order_by("-round").first()
    if before is not None and (before.value, before.reason) == (kept, reason):
        return before
    return Preference.objects.create(
        pair=pair,
        rater=person,
        value=kept,
        reason=reason,
        swapped=swapped,
        seconds=seconds,
        origin=content_hash(["preference", pair.pk, "preference", person.pk]),
        round=before.round + 1 if before else 0,
    )


def _number(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")
