"""URLs of accounts, question sets and runs; features list their own."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("evaluation.accounts.urls")),
    path("", include("evaluation.datasets.urls")),
    path("", include("evaluation.runs.urls")),
]
