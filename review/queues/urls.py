"""URL patterns of review queues."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.queues import views
from review.queues.creation import close_queue, reopen_queue

urlpatterns: list[URLPattern] = [
    path("queues/", views.queue_list, name="queue-list"),
    path("queues/new/", views.queue_new, name="queue-new"),
    path("queues/new/preview/", views.preview, name="queue-preview"),
    path("queues/<int:pk>/", views.queue, name="queue"),
    path("queues/<int:pk>/people/", views.queue_people, name="queue-people"),
    path("queues/<int:pk>/people/reassign/", views.queue_reassign, name="queue-reassign"),
    path("queues/<int:pk>/people/release/", views.queue_release, name="queue-release"),
    path("queues/<int:pk>/people/extend/", views.queue_extend, name="queue-extend"),
    path("queues/<int:pk>/people/invite/", views.queue_invite, name="queue-invite"),
    path("queues/<int:pk>/deadline/", views.queue_deadline, name="queue-deadline"),
    path("queues/<int:pk>/items/", views.queue_items, name="queue-items"),
    path("queues/<int:pk>/export/", views.queue_export, name="queue-export"),
    path("queues/<int:pk>/questions/", views.queue_questions, name="queue-questions"),
    path("queues/<int:pk>/next-round/", views.queue_next_round, name="queue-next-round"),
    path("queues/<int:pk>/close/", views.set_queue_state, {"action": close_queue}, name="queue-close"),
    path("queues/<int:pk>/reopen/", views.set_queue_state, {"action": reopen_queue}, name="queue-reopen"),
]
