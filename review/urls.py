"""Addresses of the human half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from review.views import revealing, reviewing

urlpatterns: list[URLPattern | URLResolver] = [
    path("review/<int:pk>/", reviewing.next_item, name="review-next"),
    path("items/<int:pk>/", reviewing.item, name="review-item"),
    path("items/<int:pk>/submit/", reviewing.submit_item, name="review-submit"),
    path("items/<int:pk>/draft/", reviewing.save, name="review-draft"),
    path("items/<int:pk>/skip/", reviewing.skip_item, name="review-skip"),
    path("items/<int:pk>/flag/", reviewing.flag_item, name="review-flag"),
    path("items/<int:pk>/undo/", reviewing.undo_item, name="review-undo"),
    path("items/<int:pk>/finalise/", revealing.finalise_item, name="review-finalise"),
]
