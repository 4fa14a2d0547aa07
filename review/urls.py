"""Addresses of reviewing, reports and calibration; each feature lists its own."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("review.reports.urls")),
    path("", include("review.answers.urls")),
    path("", include("review.comparisons.urls")),
    path("", include("review.releases.urls")),
    path("", include("review.agreement.urls")),
    path("", include("review.standing.urls")),
    path("", include("review.judges.urls")),
    path("", include("review.calibration.urls")),
    path("", include("review.queues.urls")),
    path("", include("review.ratings.urls")),
    path("", include("review.decisions.urls")),
]
