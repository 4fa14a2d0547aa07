"""All addresses of the site, and what they answer."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from django.urls import URLPattern, URLResolver, get_resolver


def addresses(resolver: URLResolver | None = None, before: str = "/") -> Iterator[str]:
    """Every address that takes nothing or one number, which stands as ``%d``."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern).lstrip("^").rstrip("$").replace("\\Z", "")
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        elif isinstance(pattern, URLPattern):
            plain = (
                route.replace("<int:pk>", "%d").replace("(?P<pk>[0-9]{1,18})", "%d").replace("<path:object_id>", "%d")
            )
            if not set(plain) & set("<(?"):
                yield plain


def unpacked(body: bytes) -> bytes:
    """What a workbook's parts hold; anything else as it is."""
    if not body.startswith(b"PK"):
        return body
    with ZipFile(BytesIO(body)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def body_of(reply: Any) -> bytes:
    """All that was answered, streamed or not."""
    return unpacked(b"".join(reply.streaming_content) if reply.streaming else reply.content)
