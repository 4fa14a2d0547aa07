"""URL patterns of agreement."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.agreement import views

urlpatterns: list[URLPattern] = [
    path("runs/<int:pk>/agreement/", views.run_agreement, name="run-agreement"),
    path("runs/<int:pk>/agreement/intervals/", views.run_agreement_intervals, name="run-agreement-intervals"),
    path("runs/<int:pk>/agreement/over-time/", views.run_agreement_over_time, name="run-agreement-over-time"),
]
