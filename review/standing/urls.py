"""Addresses of the standing score."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.standing import views

urlpatterns: list[URLPattern] = [path("runs/<int:pk>/standing/", views.run_standing, name="run-standing")]
