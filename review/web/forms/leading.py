"""The small forms of a lead: people, items and a deadline."""

from __future__ import annotations

from datetime import UTC, datetime

from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from evaluation.core.errors import Refused
from evaluation.core.whole_numbers import whole_number

MOMENT = "%Y-%m-%dT%H:%M"  # what a browser's field for date and time reads and sends
MOST_IDS = 5_000


def ids_of(data: QueryDict, field: str) -> set[int]:
    """The primary keys that a form sends under a name; anything else is no id."""
    sent = data.getlist(field)[:MOST_IDS]
    return {number for one in sent if (number := whole_number(one)) is not None}


def moment_of(text: str) -> datetime | None:
    """A moment in the site's time zone; ``None`` for none.

    :raises Refused: ``no_moment`` for anything else.
    """
    if not text.strip():
        return None
    try:
        moment = parse_datetime(text.strip())
        if moment is not None:
            return (moment if timezone.is_aware(moment) else timezone.make_aware(moment)).astimezone(UTC)
    except (ValueError, OverflowError):  # a day that is none, or one before or after all that are stored
        pass
    raise Refused("no_moment", text=text[:40])
