"""REST addresses of the human half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from review.api import decisions, draws, figures, items, metrics, pair_sets, ratings, review_queues

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
    path("pair-sets/", pair_sets.PairSetListView.as_view(), name="api-pairs-list"),
    path("pair-sets/<int:pk>/", pair_sets.PairSetView.as_view(), name="api-pairs"),
    path("pair-sets/<int:pk>/next/", pair_sets.NextPairView.as_view(), name="api-pairs-next"),
    path("pair-sets/<int:pk>/prefer/", pair_sets.PreferView.as_view(), name="api-pairs-prefer"),
    path("pair-sets/<int:pk>/figures/", pair_sets.PairFiguresView.as_view(), name="api-pairs-figures"),
    path("pair-sets/<int:pk>/export/", pair_sets.PairExportView.as_view(), name="api-pairs-export"),
    path("pair-sets/<int:pk>/close/", pair_sets.ClosePairsView.as_view(), name="api-pairs-close"),
    path("pair-sets/<int:pk>/reopen/", pair_sets.ReopenPairsView.as_view(), name="api-pairs-reopen"),
    path("runs/compare/", figures.CompareView.as_view(), name="api-run-compare"),
    path("runs/<int:pk>/report/", figures.ReportView.as_view(), name="api-run-report"),
    path("runs/<int:pk>/agreement/", figures.AgreementView.as_view(), name="api-run-agreement"),
    path("runs/<int:pk>/correction/", figures.CorrectionView.as_view(), name="api-run-correction"),
]
