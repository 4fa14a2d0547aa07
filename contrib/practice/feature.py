"""Extensions of the core: pages only."""

from __future__ import annotations

from evaluation.extensions import Feature

FEATURE = Feature(name="practice", urls="contrib.practice.views")
