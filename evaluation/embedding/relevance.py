"""Answer relevance (source 001): the question compared with the questions that a judge wrote from the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.core.samples import Finding, Result
from evaluation.embedding.protocol import Vector
from evaluation.embedding.vectors import cosine, percent


def answer_relevance(
    question: str, written: Sequence[str], vectors: Mapping[str, Vector], provenance: Mapping[str, Any]
) -> Result:
    """The mean cosine x 100, a mean below 0 as 0. The written questions are findings, each with its cosine.

    :raises ValueError: when no question was written.
    """
    if not written:
        raise ValueError("relevance needs at least one question")
    cosines = [cosine(vectors[question], vectors[text]) for text in written]
    mean = sum(cosines) / len(cosines)
    return Result.scored(
        percent(mean),
        detail={"cosine": mean, "questions": len(written), "embeddings": dict(provenance)},
        findings=tuple(Finding("question", text, f"{near:.4f}") for text, near in zip(written, cosines, strict=True)),
    )
