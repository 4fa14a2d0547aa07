"""Start of the REST API: entry points, the OpenAPI document, and the page that shows it."""

from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import AllowAny
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.schemas.generators import EndpointEnumerator


class SchemaView(SpectacularJSONAPIView):
    """OpenAPI document without indentation, which would triple it."""

    renderer_classes = [JSONRenderer]


@extend_schema(exclude=True)
@api_view(["GET"])
@permission_classes([AllowAny])
def entry_points(request: Request) -> Response:
    """Return the address of each list, of the OpenAPI document and of its page."""
    root = reverse("api-entry-points")
    addresses = {path.removeprefix(root).strip("/"): path for path in _list_paths() if path.startswith(root)}
    addresses["documentation"] = reverse("api-documentation")
    return Response({name: request.build_absolute_uri(path) for name, path in addresses.items() if name})


@cache
def _list_paths() -> tuple[str, ...]:
    """Addresses without an id that can be read."""
    endpoints = EndpointEnumerator().get_api_endpoints()
    return tuple(path for path, method, _ in endpoints if method == "GET" and "{" not in path)


@require_safe
def documentation(request: HttpRequest) -> HttpResponse:
    """Show the OpenAPI document with Swagger UI."""
    return render(request, "evaluation/rest/documentation.html")
