"""REST addresses of the machine's half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.views import SpectacularJSONAPIView

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SpectacularJSONAPIView.as_view(), name="api-schema"),
]
