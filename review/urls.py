"""Addresses of the human half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from review.views import answers, comparing, home, queue_new, queues, revealing, reviewing, runs

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("runs/", runs.run_list, name="run-list"),
    path("runs/compare/", comparing.run_compare, name="run-compare"),
    path("runs/compare/answers/", comparing.run_compare_answers, name="run-compare-answers"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/progress/", runs.run_progress, name="run-progress"),
    path("runs/<int:pk>/agreement/", runs.run_agreement, name="run-agreement"),
    path("answers/<int:pk>/", answers.answer, name="answer"),
    path("answers/<int:pk>/override/", answers.override_score, name="answer-override"),
    path("answers/<int:pk>/revert/", answers.revert_score, name="answer-revert"),
    path("queues/", queues.queue_list, name="queue-list"),
    path("queues/new/", queue_new.queue_new, name="queue-new"),
    path("queues/new/preview/", queue_new.preview, name="queue-preview"),
    path("queues/<int:pk>/", queues.queue, name="queue"),
    path("queues/<int:pk>/close/", queues.queue_close, name="queue-close"),
    path("queues/<int:pk>/reopen/", queues.queue_reopen, name="queue-reopen"),
    path("review/<int:pk>/", reviewing.next_item, name="review-next"),
    path("items/<int:pk>/", reviewing.item, name="review-item"),
    path("items/<int:pk>/submit/", reviewing.submit_item, name="review-submit"),
    path("items/<int:pk>/draft/", reviewing.save, name="review-draft"),
    path("items/<int:pk>/skip/", reviewing.skip_item, name="review-skip"),
    path("items/<int:pk>/flag/", reviewing.flag_item, name="review-flag"),
    path("items/<int:pk>/undo/", reviewing.undo_item, name="review-undo"),
    path("items/<int:pk>/finalise/", revealing.finalise_item, name="review-finalise"),
]
