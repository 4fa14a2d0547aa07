"""Calls about pairs, for a monitoring system."""

from __future__ import annotations

from collections.abc import Collection

from evaluation.runs.monitoring import Calls
from review.models import PairReply


def calls_about_pairs(projects: Collection[int]) -> Calls:
    """Those of the comparisons of these projects."""
    return Calls("pairs", PairReply.objects.filter(attempt__judging__pair_set__project__in=projects))
