"""How often somebody may ask within an hour for what costs a pass over a whole run or queue: files, and figures; and
files as answers to a request.

Kept in the database, so that every web process counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.db import DatabaseError
from django.http import StreamingHttpResponse
from django.utils.http import http_date
from rest_framework.throttling import SimpleRateThrottle

from evaluation.core.errors import Later, TooOften
from evaluation.formats.export import ExportFile
from evaluation.models import User
from evaluation.worker.database import unwritable


class HourlyThrottle(SimpleRateThrottle):
    """A throttle of the REST framework for one person, which pages use too, counted in the database."""

    cache = caches["shared"]
    duration: int

    def __init__(self, person: User, scope: str, limit: int) -> None:
        self.person, self.scope, self.rate = person, scope, f"{limit}/hour"
        super().__init__()

    def get_cache_key(self, request: Any, view: Any) -> str:
        """One key per person and scope."""
        return str(self.cache_format % {"scope": self.scope, "ident": self.person.pk})

    def take_back(self) -> None:
        """Remove the request that was counted last by this throttle."""
        counted = self.cache.get(self.key, [])
        self.cache.set(self.key, [at for at in counted if at != self.now], self.duration)


def take_export(person: User) -> HourlyThrottle | None:
    """Count a file that is about to be made for the person; ``None`` where none is counted.

    :raises TooOften: ``too_many_exports``, beyond ``CONCORD_EXPORTS_PER_HOUR`` within an hour; that try does not count.
    """
    return _take(person, "files", settings.CONCORD_EXPORTS_PER_HOUR, "too_many_exports")


def download(made: ExportFile) -> StreamingHttpResponse:
    """The file as an answer that a browser saves under its name; ``Last-Modified`` is when it was made."""
    response = StreamingHttpResponse(made.chunks, content_type=made.media_type)
    response["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
    if made.made_at:
        response["Last-Modified"] = http_date(made.made_at.timestamp())
    return response


def take_figures(person: User) -> HourlyThrottle | None:
    """Count figures that are about to be computed for a program of the person, likewise.

    :raises TooOften: ``too_many_figures``, beyond ``CONCORD_FIGURES_PER_HOUR`` within an hour; that try does not count.
    """
    return _take(person, "figures", settings.CONCORD_FIGURES_PER_HOUR, "too_many_figures")


@contextmanager
def uncounted_if_later(taken: HourlyThrottle | None) -> Iterator[None]:
    """Take the count back where a worker makes it first: whoever asks again asks for the same."""
    try:
        yield
    except Later:
        if taken:
            taken.take_back()
        raise


def _take(person: User, scope: str, limit: int, refusal: str) -> HourlyThrottle | None:
    if limit < 1:
        return None
    throttle = HourlyThrottle(person, scope, limit)
    try:
        allowed = throttle.allow_request(None, None)  # type: ignore[arg-type]  # the key is the person's
    except DatabaseError as error:
        if unwritable(error):  # what can be read still is, uncounted
            return None
        raise
    if allowed:
        return throttle
    seconds = max(1, math.ceil(throttle.wait() or throttle.duration))
    raise TooOften(refusal, seconds, limit=limit, minutes=math.ceil(seconds / 60))
