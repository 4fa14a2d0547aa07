"""URLs of question sets."""

from __future__ import annotations

from django.urls import URLPattern, path

from evaluation.datasets import views
from evaluation.datasets.uploads import ANSWERS, QUESTIONS

urlpatterns: list[URLPattern] = [
    path("question-sets/", views.question_set_list, name="question-set-list"),
    path("question-sets/upload/", views.upload, name="question-set-upload"),
    path("question-sets/upload/<uuid:uuid>/", views.upload_preview, name="question-set-preview"),
    path(
        "question-sets/upload/<uuid:uuid>/columns/",
        views.columns,
        {"kind": QUESTIONS},
        name="question-set-columns",
    ),
    path(
        "question-sets/upload/<uuid:uuid>/encoding/",
        views.encoding,
        {"kind": QUESTIONS},
        name="question-set-encoding",
    ),
    path("question-sets/upload/<uuid:uuid>/confirm/", views.upload_confirm, name="question-set-confirm"),
    path(
        "question-sets/upload/<uuid:uuid>/cancel/",
        views.upload_cancel,
        {"kind": QUESTIONS},
        name="question-set-cancel",
    ),
    path("question-sets/<int:pk>/", views.question_set, name="question-set"),
    path("evaluations/answers/<uuid:uuid>/columns/", views.columns, {"kind": ANSWERS}, name="answers-columns"),
    path("evaluations/answers/<uuid:uuid>/encoding/", views.encoding, {"kind": ANSWERS}, name="answers-encoding"),
    path("evaluations/answers/<uuid:uuid>/cancel/", views.upload_cancel, {"kind": ANSWERS}, name="answers-cancel"),
]
