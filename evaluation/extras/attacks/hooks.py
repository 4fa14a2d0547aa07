"""What attacks do for the core: nothing, but entrances ask whether they are there."""

from __future__ import annotations

from evaluation.work.plugins import Extra

EXTRA = Extra(name="attacks")
