"""Addresses of runs and their reports."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.reports import views

urlpatterns: list[URLPattern] = [
    path("", views.home, name="home"),
    path("runs/", views.run_list, name="run-list"),
    path("runs/<int:pk>/", views.run, name="run"),
    path("runs/<int:pk>/assumption/", views.run_assume, name="run-assume"),
    path("runs/<int:pk>/report/", views.run_report, name="run-report"),
    path("runs/<int:pk>/records/", views.run_records, name="run-records"),
    path("runs/<int:pk>/progress/", views.run_progress, name="run-progress"),
    path("intervals/", views.intervals, name="intervals"),
    path("runs/<int:pk>/retrieval/", views.run_retrieval, name="run-retrieval"),
]
