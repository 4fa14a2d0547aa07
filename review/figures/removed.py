"""Answers that a lead took out of all means by upholding a flag of a bad question or reference."""

from __future__ import annotations

from django.db.models import Exists, OuterRef

from review.given import FlagKind
from review.models import EventRuling

REMOVING = frozenset({FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value})


def removed_answers(answer_set_id: int) -> frozenset[int]:
    """The answers of the set with an upheld flag of these kinds. One query."""
    newer = EventRuling.objects.filter(event=OuterRef("event"), seq__gt=OuterRef("seq"))
    upheld = EventRuling.objects.filter(
        ~Exists(newer),
        upheld=True,
        event__verb="flag",
        event__kind__in=REMOVING,
        event__assignment__item__answer__answer_set_id=answer_set_id,
    )
    return frozenset(upheld.values_list("event__assignment__item__answer_id", flat=True))
