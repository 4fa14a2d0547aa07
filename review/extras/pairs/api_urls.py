"""REST addresses of comparisons side by side."""

from __future__ import annotations

from django.urls import URLPattern, path

from review.extras.pairs import api

urlpatterns: list[URLPattern] = [
    path("pair-sets/", api.PairSetListView.as_view(), name="api-pairs-list"),
    path("pair-sets/<int:pk>/", api.PairSetView.as_view(), name="api-pairs"),
    path("pair-sets/<int:pk>/next/", api.NextPairView.as_view(), name="api-pairs-next"),
    path("pair-sets/<int:pk>/prefer/", api.PreferView.as_view(), name="api-pairs-prefer"),
    path("pair-sets/<int:pk>/figures/", api.PairFiguresView.as_view(), name="api-pairs-figures"),
    path("pair-sets/<int:pk>/export/", api.PairExportView.as_view(), name="api-pairs-export"),
    path("pair-sets/<int:pk>/close/", api.ClosePairsView.as_view(), name="api-pairs-close"),
    path("pair-sets/<int:pk>/reopen/", api.ReopenPairsView.as_view(), name="api-pairs-reopen"),
]
