"""The icon at the address that browsers ask for when a response, such as JSON, cannot name one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@require_safe
def favicon(request: HttpRequest) -> HttpResponsePermanentRedirect:
    """Where the icon is."""
    return HttpResponsePermanentRedirect(static("favicon.ico"))
