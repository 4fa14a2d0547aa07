"""How often somebody may ask within an hour for what costs a pass over a whole run or queue: files, and figures; and
files as answers to a request.

Kept in the database, so that every web process counts.
"""

from __future__ import annotations

import math
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.http import StreamingHttpResponse
from django.utils import timezone

from evaluation.core.errors import TooOften
from evaluation.files.export import ExportFile
from evaluation.models import TakenExport, User
from evaluation.work.database import unwritable

WINDOW = timedelta(hours=1)
Kind = TakenExport.Kind


def take_export(person: User) -> None:
    """Count a file that is about to be made for the person. Three queries.

    :raises TooOften: ``too_many_exports``, beyond ``CONCORD_EXPORTS_PER_HOUR`` within an hour; that try does not count.
    """
    _take(person, Kind.FILE, settings.CONCORD_EXPORTS_PER_HOUR, "too_many_exports")


def download(made: ExportFile) -> StreamingHttpResponse:
    """The file as an answer that a browser saves under its name."""
    response = StreamingHttpResponse(made.chunks, content_type=made.media_type)
    response["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
    return response


def take_figures(person: User) -> None:
    """Count figures that are about to be computed for a program of the person. Three queries.

    :raises TooOften: ``too_many_figures``, beyond ``CONCORD_FIGURES_PER_HOUR`` within an hour; that try does not count.
    """
    _take(person, Kind.FIGURES, settings.CONCORD_FIGURES_PER_HOUR, "too_many_figures")


def _take(person: User, kind: Kind, limit: int, refusal: str) -> None:
    """Write the row before counting, so that requests at the same moment cannot all pass for the last one."""
    if limit < 1:
        return
    try:
        row = TakenExport.objects.create(person=person, kind=kind)
    except DatabaseError as error:
        if unwritable(error):  # what can be read still is, uncounted
            return
        raise
    mine = TakenExport.objects.filter(person=person, kind=kind)
    mine.filter(created_at__lte=row.created_at - WINDOW).delete()
    others = list(mine.exclude(pk=row.pk).order_by("-created_at").values_list("created_at", flat=True)[:limit])
    if len(others) < limit:
        return
    row.delete()
    seconds = max(1, math.ceil((others[-1] + WINDOW - timezone.now()).total_seconds()))
    raise TooOften(refusal, seconds, limit=limit, minutes=math.ceil(seconds / 60))
