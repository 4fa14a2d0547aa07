"""What attacks do for the core: nothing, but entrances ask whether they are there."""

from __future__ import annotations

from evaluation.extensions import Feature

FEATURE = Feature(name="attacks")
