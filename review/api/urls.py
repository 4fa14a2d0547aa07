"""REST addresses of the human half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from review.api import decisions, draws, figures, items, metrics, ratings, review_queues

router = SimpleRouter(use_regex_path=False)
router.register("draws", draws.DrawViewSet, "api-draw")
router.register("review-queues", review_queues.QueueViewSet, "api-queue")
router.register("items", items.ItemViewSet, "api-item")
router.register("ratings", ratings.RatingViewSet, "api-rating")
router.register("answers", decisions.AnswerViewSet, "api-answer")
router.register("runs", decisions.RunDecisionViewSet, "api-run")
router.register("adjudication", decisions.CaseViewSet, "api-adjudication")
router.register("adjudication/raised", decisions.RaisedViewSet, "api-raised")

urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path("metrics/", metrics.MetricsView.as_view(), name="api-metrics"),
    path("runs/compare/", figures.CompareView.as_view(), name="api-run-compare"),
    path("runs/<int:pk>/report/", figures.ReportView.as_view(), name="api-run-report"),
    path("runs/<int:pk>/agreement/", figures.AgreementView.as_view(), name="api-run-agreement"),
    path("runs/<int:pk>/correction/", figures.CorrectionView.as_view(), name="api-run-correction"),
]
