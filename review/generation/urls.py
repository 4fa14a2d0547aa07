"""Addresses of generated questions."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.generation import views

urlpatterns: list[URLPattern] = [
    path("generations/", views.generation_list, name="generation-list"),
    path("generations/new/", views.generation_new, name="generation-new"),
    path("generations/<int:pk>/", views.generation, name="generation"),
    path("generations/<int:pk>/go-on/", views.generation_go_on, name="generation-go-on"),
    path("generations/<int:pk>/set/", views.generation_set, name="generation-set"),
    path("generations/questions/<int:pk>/", views.draft_decide, name="draft-decide"),
]
