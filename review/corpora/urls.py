"""Addresses of corpora."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.corpora import views

urlpatterns: list[URLPattern] = [
    path("question-sets/<int:pk>/quality/", views.set_quality_page, name="set-quality"),
    path("corpora/", views.corpus_list, name="corpus-list"),
    path("corpora/upload/", views.corpus_upload, name="corpus-upload"),
    path("corpora/<int:pk>/", views.corpus, name="corpus"),
    path("corpora/documents/<int:pk>/", views.document, name="corpus-document"),
]
