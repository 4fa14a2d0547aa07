"""A person's way through the practice examples: kept beside the ratings, never among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from evaluation.models import User
from review.extras.practice.items import METRICS, Levels, PracticeItem, practice_items
from review.models import PracticeProgress


@dataclass(frozen=True, slots=True)
class Practice:
    """What a person has rated so far, by example, and how often they went through all of them."""

    given: Mapping[str, Levels]
    rounds: int

    @property
    def rated(self) -> int:
        """How many of the examples have been rated this time."""
        return sum(item.id in self.given for item in practice_items())

    @property
    def finished(self) -> bool:
        """Whether every example has been rated this time."""
        return self.rated == len(practice_items())

    def next_after(self, place: int) -> int | None:
        """The place (from 1) of the next example without a rating, searched onwards and around; ``None``: all rated."""
        items = practice_items()
        ahead = [(place + step) % len(items) for step in range(len(items))]
        return next((at + 1 for at in ahead if items[at].id not in self.given), None)


def practice_of(user: User) -> Practice:
    """The person's way so far."""
    row = PracticeProgress.objects.filter(user=user).first()
    return Practice(row.given, row.rounds) if row else Practice({}, 0)


@transaction.atomic
def practise(user: User, item: PracticeItem, levels: Levels) -> None:
    """Keep the levels of an example. What was rated already stays as it is: the feedback has been seen."""
    row, _ = PracticeProgress.objects.select_for_update().get_or_create(user=user)
    if item.id in row.given:
        return
    row.given = {**row.given, item.id: {name: levels[name] for name in METRICS}}
    row.rounds += Practice(row.given, 0).finished
    row.save(update_fields=["given", "rounds"])


def practise_again(user: User) -> None:
    """Empty the examples, to go through them once more."""
    PracticeProgress.objects.filter(user=user).update(given={})
