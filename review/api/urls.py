"""REST addresses of the human half."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from review.api import (
    adjudication,
    draws,
    figures,
    items,
    leading,
    metrics,
    overrides,
    pair_sets,
    rating_files,
    review_queues,
)

_ITEM_ACTIONS = {
    "draft": items.DraftView,
    "submit": items.SubmitView,
    "reveal": items.RevealView,
    "finalise": items.FinaliseView,
    "undo": items.UndoView,
    "skip": items.SkipView,
    "flag": items.FlagView,
    "escalate": items.EscalateView,
    "release": items.ReleaseView,
    "extend": items.ExtendView,
}

urlpatterns: list[URLPattern | URLResolver] = [
    path("metrics/", metrics.MetricsView.as_view(), name="api-metrics"),
    path("draws/", draws.DrawListView.as_view(), name="api-draw-list"),
    path("draws/<int:pk>/", draws.DrawView.as_view(), name="api-draw"),
    path("review-queues/", review_queues.QueueListView.as_view(), name="api-queue-list"),
    path("review-queues/<int:pk>/", review_queues.QueueView.as_view(), name="api-queue"),
    path("review-queues/<int:pk>/items/", review_queues.QueueItemsView.as_view(), name="api-queue-items"),
    path("review-queues/<int:pk>/next/", review_queues.NextView.as_view(), name="api-queue-next"),
    path("review-queues/<int:pk>/progress/", review_queues.ProgressView.as_view(), name="api-queue-progress"),
    path("review-queues/<int:pk>/export/", leading.ExportView.as_view(), name="api-queue-export"),
    path("review-queues/<int:pk>/agreement/", leading.ReviewersView.as_view(), name="api-queue-agreement"),
    path("review-queues/<int:pk>/reassign/", leading.ReassignView.as_view(), name="api-queue-reassign"),
    path("review-queues/<int:pk>/release/", leading.ReleaseView.as_view(), name="api-queue-release"),
    path("review-queues/<int:pk>/extend/", leading.ExtendView.as_view(), name="api-queue-extend"),
    path("review-queues/<int:pk>/name-reviewers/", leading.NamesView.as_view(), name="api-queue-name-reviewers"),
    path("review-queues/<int:pk>/deadline/", leading.DeadlineView.as_view(), name="api-queue-deadline"),
    path("review-queues/<int:pk>/close/", review_queues.CloseView.as_view(), name="api-queue-close"),
    path("review-queues/<int:pk>/reopen/", review_queues.ReopenView.as_view(), name="api-queue-reopen"),
    path("items/<int:pk>/", items.ItemView.as_view(), name="api-item"),
    *(
        path(f"items/<int:pk>/{action}/", view.as_view(), name=f"api-item-{action}")
        for action, view in _ITEM_ACTIONS.items()
    ),
    path("pair-sets/", pair_sets.PairSetListView.as_view(), name="api-pairs-list"),
    path("pair-sets/<int:pk>/", pair_sets.PairSetView.as_view(), name="api-pairs"),
    path("pair-sets/<int:pk>/next/", pair_sets.NextPairView.as_view(), name="api-pairs-next"),
    path("pair-sets/<int:pk>/prefer/", pair_sets.PreferView.as_view(), name="api-pairs-prefer"),
    path("pair-sets/<int:pk>/figures/", pair_sets.PairFiguresView.as_view(), name="api-pairs-figures"),
    path("pair-sets/<int:pk>/export/", pair_sets.PairExportView.as_view(), name="api-pairs-export"),
    path("pair-sets/<int:pk>/close/", pair_sets.ClosePairsView.as_view(), name="api-pairs-close"),
    path("pair-sets/<int:pk>/reopen/", pair_sets.ReopenPairsView.as_view(), name="api-pairs-reopen"),
    path("answers/<int:pk>/override/", overrides.OverrideView.as_view(), name="api-answer-override"),
    path("answers/<int:pk>/adjudicate/", adjudication.AdjudicateView.as_view(), name="api-answer-adjudicate"),
    path("adjudication/", adjudication.AdjudicationListView.as_view(), name="api-adjudication-list"),
    path("adjudication/raised/<int:pk>/ruling/", adjudication.RulingView.as_view(), name="api-ruling"),
    path("runs/<int:pk>/override/", overrides.ManyOverridesView.as_view(), name="api-run-override"),
    path("ratings/", rating_files.RatingsView.as_view(), name="api-rating-list"),
    path("runs/compare/", figures.CompareView.as_view(), name="api-run-compare"),
    path("runs/<int:pk>/report/", figures.ReportView.as_view(), name="api-run-report"),
    path("runs/<int:pk>/agreement/", figures.AgreementView.as_view(), name="api-run-agreement"),
    path("runs/<int:pk>/correction/", figures.CorrectionView.as_view(), name="api-run-correction"),
]
