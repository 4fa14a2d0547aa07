"""How often somebody may ask within an hour for what costs a pass over a whole run or queue: files, and figures; and
files as answers to a request.

Kept in the database, so that every web process counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.http import http_date

from evaluation.core.errors import Later, TooOften
from evaluation.files.export import ExportFile
from evaluation.models import TakenExport, User
from evaluation.work.database import unwritable

WINDOW = timedelta(hours=1)
Kind = TakenExport.Kind


def take_export(person: User) -> TakenExport | None:
    """Count a file that is about to be made for the person; ``None`` where none is counted. Three queries.

    :raises TooOften: ``too_many_exports``, beyond ``CONCORD_EXPORTS_PER_HOUR`` within an hour; that try does not count.
    """
    return _take(person, Kind.FILE, settings.CONCORD_EXPORTS_PER_HOUR, "too_many_exports")


def download(made: ExportFile) -> StreamingHttpResponse:
    """The file as an answer that a browser saves under its name; ``Last-Modified`` is when it was made."""
    response = StreamingHttpResponse(made.chunks, content_type=made.media_type)
    response["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
    if made.made_at:
        response["Last-Modified"] = http_date(made.made_at.timestamp())
    return response


def take_figures(person: User) -> TakenExport | None:
    """Count figures that are about to be computed for a program of the person, likewise.

    :raises TooOften: ``too_many_figures``, beyond ``CONCORD_FIGURES_PER_HOUR`` within an hour; that try does not count.
    """
    return _take(person, Kind.FIGURES, settings.CONCORD_FIGURES_PER_HOUR, "too_many_figures")


@contextmanager
def uncounted_if_later(taken: TakenExport | None) -> Iterator[None]:
    """Take the count back where a worker makes it first: whoever asks again asks for the same."""
    try:
        yield
    except Later:
        if taken:
            taken.delete()
        raise


def _take(person: User, kind: Kind, limit: int, refusal: str) -> TakenExport | None:
    """Write the row before counting, so that requests at the same moment cannot all pass for the last one."""
    if limit < 1:
        return None
    try:
        row = TakenExport.objects.create(person=person, kind=kind)
    except DatabaseError as error:
        if unwritable(error):  # what can be read still is, uncounted
            return None
        raise
    mine = TakenExport.objects.filter(person=person, kind=kind)
    mine.filter(created_at__lte=row.created_at - WINDOW).delete()
    others = list(mine.exclude(pk=row.pk).order_by("-created_at").values_list("created_at", flat=True)[:limit])
    if len(others) < limit:
        return row
    row.delete()
    seconds = max(1, math.ceil((others[-1] + WINDOW - timezone.now()).total_seconds()))
    raise TooOften(refusal, seconds, limit=limit, minutes=math.ceil(seconds / 60))
