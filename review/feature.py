"""Background tasks of queues, calibration, generated questions and cached figures."""

from __future__ import annotations

from evaluation.extensions import Feature
from review.calibration import anchors, looking, searching
from review.figure_cache import making
from review.generation import working
from review.queues import directing

FEATURE = Feature(
    name="review",
    periodic=(
        directing.remind_all,
        looking.ring_waiting,
        searching.ring_waiting,
        anchors.check_all,
        working.ring_waiting,
        making.ring_waiting,
    ),
    after_drain=(making.make_waiting,),
)
