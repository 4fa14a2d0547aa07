"""Background tasks of queues, calibration and cached figures."""

from __future__ import annotations

from evaluation.extensions import Feature
from review.calibration import anchors, looking, searching
from review.figure_cache import making
from review.queues import directing

FEATURE = Feature(
    name="review",
    jobs=(looking.advance_holdout_test, searching.advance_search, anchors.check_anchors),
    periodic=(
        directing.remind_all,
        anchors.begin_due_checks,
        making.maintain_cache,
    ),
    after_drain=(making.build_requested,),
)
