"""URLs of calibration."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.calibration import views

urlpatterns: list[URLPattern] = [
    path("calibration/", views.calibration_list, name="calibration-list"),
    path("calibration/freeze/", views.calibration_freeze, name="calibration-freeze"),
    path("calibration/<int:pk>/", views.calibration, name="calibration"),
    path("calibration/<int:pk>/grow/", views.calibration_grow, name="calibration-grow"),
    path("calibration/<int:pk>/retire/", views.calibration_retire, name="calibration-retire"),
    path("calibration/<int:pk>/open/", views.calibration_open, name="calibration-open"),
    path("calibration/<int:pk>/draft/", views.calibration_draft, name="calibration-draft"),
    path("calibration/<int:pk>/try/", views.calibration_try, name="calibration-try"),
    path("calibration/<int:pk>/run/", views.calibration_run, name="calibration-run"),
    path("calibration/<int:pk>/propose/", views.calibration_offer, name="calibration-propose"),
    path("calibration/<int:pk>/search/", views.calibration_search, name="calibration-search"),
    path("calibration/<int:pk>/check/", views.calibration_check, name="calibration-check"),
    path("calibration/<int:pk>/holdout-test/", views.calibration_look, name="calibration-holdout-test"),
]
