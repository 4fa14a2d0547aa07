"""Background tasks of queues, calibration and cached figures."""

from __future__ import annotations

from evaluation.extensions import Feature
from review.calibration import anchors, holdout_tests, search
from review.figure_cache import builders
from review.queues import reassignment

FEATURE = Feature(
    name="review",
    jobs=(holdout_tests.advance_holdout_test, search.advance_search, anchors.check_anchors),
    periodic=(
        reassignment.remind_all,
        anchors.begin_due_checks,
        builders.maintain_cache,
    ),
    after_drain=(builders.build_requested,),
)
