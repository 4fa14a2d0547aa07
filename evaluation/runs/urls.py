"""URLs of new evaluations and of actions on a run."""

from __future__ import annotations

from django.urls import URLPattern, path

from evaluation.runs import views
from evaluation.worker import lifecycle

urlpatterns: list[URLPattern] = [
    path("evaluations/new/", views.new_evaluation, name="evaluation-new"),
    path("evaluations/new/run/", views.new_run, name="evaluation-run"),
    path("evaluations/try/", views.preview_system, name="evaluation-try"),
    path("evaluations/answers/<uuid:uuid>/", views.answers_preview, name="answers-preview"),
    path("evaluations/answers/<uuid:uuid>/confirm/", views.answers_confirm, name="answers-confirm"),
    path("runs/<int:pk>/start/", views.steer, {"action": lifecycle.start}, name="run-start"),
    path("runs/<int:pk>/pause/", views.steer, {"action": lifecycle.pause}, name="run-pause"),
    path("runs/<int:pk>/resume/", views.resume, name="run-resume"),
    path("runs/<int:pk>/cancel/", views.steer, {"action": lifecycle.cancel}, name="run-cancel"),
    path("runs/<int:pk>/retry/", views.retry, name="run-retry"),
]
