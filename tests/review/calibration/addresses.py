"""Every URL of the site, and the content of its responses."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from django.urls import URLPattern, URLResolver, get_resolver


def addresses(resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[str]:
    """Yield every URL without parameters or with one number, written ``%d``."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = prefix + str(pattern.pattern).lstrip("^").rstrip("$").replace("\\Z", "")
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        elif isinstance(pattern, URLPattern):
            plain = (
                route.replace("<int:pk>", "%d").replace("(?P<pk>[0-9]{1,18})", "%d").replace("<path:object_id>", "%d")
            )
            if not set(plain) & set("<(?"):
                yield plain


def unpack(body: bytes) -> bytes:
    """Return the contents of a workbook's parts; other bodies unchanged."""
    if not body.startswith(b"PK"):
        return body
    with ZipFile(BytesIO(body)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def body_of(reply: Any) -> bytes:
    return unpack(b"".join(reply.streaming_content) if reply.streaming else reply.content)
