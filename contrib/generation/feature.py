"""Extensions of the core: addresses, and the background task that goes on with generations."""

from __future__ import annotations

from contrib.generation.working import ring_waiting
from evaluation.extensions import Feature

FEATURE = Feature(
    name="generation",
    urls="contrib.generation.views",
    api_urls="contrib.generation.api",
    periodic=(ring_waiting,),
)
