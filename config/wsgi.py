"""WSGI entrance. Every request is read to its end, also where the answer was clear before.

Django leaves the body unread where the headers decide: no permission, no such page, larger than allowed. A server of
HTTP/1.1 then closes the connection without having said so, and the client loses the answer it was to read (that the
file is too large) or its next request.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.utils.module_loading import import_string

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
CHUNK_BYTES = 64 * 1024


def read_to_the_end(application: Application, at_most: int) -> Application:
    """The application, leaving nothing of a request's body unread.

    :param at_most: bytes read for nothing; who sends more sees the connection end.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = application(environ, start_response)
        # Without the mark the input has no end of its own, and reading on would wait for ever.
        if environ.get("wsgi.input_terminated") and _has_body(environ):
            left = at_most
            while left > 0 and (chunk := environ["wsgi.input"].read(min(CHUNK_BYTES, left))):
                left -= len(chunk)
        return response

    return answer


def _has_body(environ: dict[str, Any]) -> bool:
    return environ.get("CONTENT_LENGTH", "") not in {"", "0"} or "HTTP_TRANSFER_ENCODING" in environ


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = read_to_the_end(get_wsgi_application(), at_most=5 * settings.CONCORD_UPLOAD_BYTES)
import_string("evaluation.work.database.limit_waits")()  # its tables can be imported from here on only
