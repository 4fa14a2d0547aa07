"""Register URLs and the background job that writes questions."""

from __future__ import annotations

from contrib.generation.runner import write_questions
from evaluation.extensions import Feature

FEATURE = Feature(
    name="generation",
    urls="contrib.generation.views",
    api_urls="contrib.generation.api",
    jobs=(write_questions,),
)
