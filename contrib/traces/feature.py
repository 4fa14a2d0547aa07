"""Register URLs, and the card on the page of a new evaluation."""

from __future__ import annotations

from evaluation.extensions import Feature

FEATURE = Feature(
    name="traces",
    urls="contrib.traces.views",
    api_urls="contrib.traces.api",
    answer_source="traces/_source.html",
)
