"""URL patterns of the reviewer's pages."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.ratings import views

urlpatterns: list[URLPattern] = [
    path("review/<int:pk>/", views.next_item, name="review-next"),
    path("items/<int:pk>/", views.item, name="review-item"),
    path("items/<int:pk>/submit/", views.submit_item, name="review-submit"),
    path("items/<int:pk>/draft/", views.save_item_draft, name="review-draft"),
    path("items/<int:pk>/prefetch/", views.prefetch_item, name="review-prefetch"),
    path("items/<int:pk>/skip/", views.skip_item, name="review-skip"),
    path("items/<int:pk>/flag/", views.flag_item, name="review-flag"),
    path("items/<int:pk>/escalate/", views.escalate_item, name="review-escalate"),
    path("items/<int:pk>/extend/", views.extend_item, name="review-extend"),
    path("items/<int:pk>/undo/", views.undo_item, name="review-undo"),
    path("items/<int:pk>/finalise/", views.finalise_item, name="review-finalise"),
    path("items/<int:pk>/rerate/", views.rate_item_again, name="review-rerate"),
    path("my-ratings/", views.my_ratings, name="my-ratings"),
    path("keys/", views.keys, name="review-keys"),
    path("keys/switch/", views.switch_keys, name="keys-switch"),
]
