"""All addresses of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from evaluation.api.unknown import unknown

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("evaluation.api.urls")),
    path("api/v1/", include("review.api.urls")),
    path("api/<path:rest>", unknown),
    path("", include("evaluation.urls")),
    path("", include("review.urls")),
]
