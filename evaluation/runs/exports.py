"""Hourly limits per person for exports and figure requests, and file downloads.

The counters are in the database, so that all web processes share them."""

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

from evaluation.core.errors import NotReady, RateLimited
from evaluation.formats.export import ExportFile
from evaluation.models import User
from evaluation.worker.database import unwritable_reason


class HourlyThrottle(SimpleRateThrottle):
    """A REST framework throttle for one person that pages use too. Its counter is in the database."""

    cache = caches["shared"]
    duration: int

    def __init__(self, person: User, scope: str, limit: int) -> None:
        self.person, self.scope, self.rate = person, scope, f"{limit}/hour"
        super().__init__()

    def get_cache_key(self, request: Any, view: Any) -> str:
        return str(self.cache_format % {"scope": self.scope, "ident": self.person.pk})

    def refund(self) -> None:
        """Remove the last request that this throttle counted."""
        timestamps = self.cache.get(self.key, [])
        self.cache.set(self.key, [timestamp for timestamp in timestamps if timestamp != self.now], self.duration)


def count_export(person: User) -> HourlyThrottle | None:
    """Count an export of the person; ``None`` if exports are not limited.

    :raises RateLimited: ``too_many_exports``, above ``CONCORD_EXPORTS_PER_HOUR``. A refused export does not count."""
    return _count_request(person, "files", settings.CONCORD_EXPORTS_PER_HOUR, "too_many_exports")


def download_response(export: ExportFile) -> StreamingHttpResponse:
    """The export as a file download. ``Last-Modified`` is the time at which it was created."""
    response = StreamingHttpResponse(export.chunks, content_type=export.media_type)
    response["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
    if export.made_at:
        response["Last-Modified"] = http_date(export.made_at.timestamp())
    return response


def count_figures(person: User) -> HourlyThrottle | None:
    """Count a figure request by a program of the person; ``None`` if they are not limited.

    :raises RateLimited: ``too_many_figures``, above ``CONCORD_ANALYSES_PER_HOUR``. A refused request does not count."""
    return _count_request(person, "figures", settings.CONCORD_ANALYSES_PER_HOUR, "too_many_figures")


@contextmanager
def refund_if_later(throttle: HourlyThrottle | None) -> Iterator[None]:
    """Refund the count when a worker has to compute the figures first, because the client will repeat the request."""
    try:
        yield
    except NotReady:
        if throttle:
            throttle.refund()
        raise


def _count_request(person: User, scope: str, limit: int, code: str) -> HourlyThrottle | None:
    if limit < 1:
        return None
    throttle = HourlyThrottle(person, scope, limit)
    try:
        allowed = throttle.allow_request(None, None)  # type: ignore[arg-type]  # the key is the person's
    except DatabaseError as error:
        # A read-only database still serves reads, so the request passes uncounted.
        if unwritable_reason(error):
            return None
        raise
    if allowed:
        return throttle
    seconds = max(1, math.ceil(throttle.wait() or throttle.duration))
    raise RateLimited(code, seconds, limit=limit, minutes=math.ceil(seconds / 60))
