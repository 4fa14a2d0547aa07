"""Addresses of judges."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.judges import views

urlpatterns: list[URLPattern] = [
    path("judges/", views.judge_list, name="judge-list"),
    path("judges/<int:pk>/", views.judge, name="judge"),
    path("judges/<int:pk>/try/", views.judge_try, name="judge-try"),
    path("judges/<int:pk>/card/", views.judge_card_file, name="judge-card"),
]
