"""URLs of adjudication."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.decisions import views

urlpatterns: list[URLPattern] = [
    path("adjudication/", views.adjudication, name="adjudication"),
    path("adjudication/<int:pk>/", views.case, name="adjudication-case"),
    path("adjudication/<int:pk>/decide/", views.decide, name="adjudication-decide"),
    path("adjudication/<int:pk>/question/", views.question, name="adjudication-question"),
    path("adjudication/<int:pk>/rubric/<str:metric>/", views.rubric, name="adjudication-rubric"),
    path("adjudication/flags/<int:pk>/", views.rule, name="ruling"),
]
