"""Addresses of comparisons side by side."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.extras.pairs import views

urlpatterns: list[URLPattern] = [
    path("pairs/", views.pair_list, name="pair-list"),
    path("pairs/new/", views.pair_new, name="pair-new"),
    path("pairs/<int:pk>/", views.pair_set, name="pairs"),
    path("pairs/<int:pk>/rate/", views.pair_rate, name="pairs-rate"),
    path("pairs/<int:pk>/prefer/", views.pair_prefer, name="pairs-prefer"),
    path("pairs/<int:pk>/export/", views.pair_export, name="pairs-export"),
    path("pairs/<int:pk>/close/", views.pair_close, name="pairs-close"),
]
