"""URL patterns of the release difference."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.releases import views

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/pairs/<int:baseline_pk>/", views.pair_queue_new, name="pair-queue-new"),
]
