"""URLs of comparisons and question set quality."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.comparisons import views

urlpatterns: list[URLPattern] = [
    path("runs/compare/", views.compare_runs, name="run-compare"),
    path("runs/compare/answers/", views.compare_run_answers, name="run-compare-answers"),
    path("question-sets/<int:pk>/quality/", views.set_quality_page, name="set-quality"),
]
