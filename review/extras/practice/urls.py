"""Addresses of practice."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.extras.practice import views

urlpatterns: list[URLPattern] = [
    path("practice/", views.start, name="practice"),
    path("practice/again/", views.again, name="practice-again"),
    path("practice/<int:number>/", views.example, name="practice-example"),
]
