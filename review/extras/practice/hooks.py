"""What practice does for the core: nothing but its pages."""

from __future__ import annotations

from evaluation.work.plugins import Extra

EXTRA = Extra(name="practice", urls="review.extras.practice.views")
