"""Addresses of answers."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.answers import search, views

urlpatterns: list[URLPattern] = [
    path("search/", search.search, name="search"),
    path("runs/<int:pk>/answers/", views.run_answers, name="run-answers"),
    path("runs/<int:pk>/answers/override/", views.run_override, name="run-override"),
    path("answers/<int:pk>/", views.answer, name="answer"),
    path("answers/<int:pk>/calls/", views.answer_calls, name="answer-calls"),
    path("answers/<int:pk>/override/", views.override_score, name="answer-override"),
    path("answers/<int:pk>/revert/", views.revert_score, name="answer-revert"),
]
