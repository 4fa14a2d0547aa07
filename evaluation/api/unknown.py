"""The answer to addresses below ``/api/`` that do not exist: JSON, not a page."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt
def unknown(request: HttpRequest, rest: str = "") -> JsonResponse:
    """404 with a hint. There is nothing to protect here, so programs without a CSRF token get it too."""
    return JsonResponse({"detail": _("There is nothing here. Addresses end with a slash.")}, status=404)
