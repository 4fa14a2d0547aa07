"""Answer relevance (source 001): the question compared with the questions that a judge wrote from the answer. Semantic
similarity (source 001): how near an answer's embedding is to the nearest expected answer's.

The latter is no correctness: a sentence and its negation lie near each other, and what is near depends on the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.samples import AnswerSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import PERCENT
from evaluation.embedding.protocol import Vector, cosine, percent


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


SPEC = MetricSpec(
    name="semantic_similarity",
    kind=Kind.EMBEDDING,
    scale=PERCENT,
    title=Bilingual("Semantic similarity", "의미 유사도"),
    formula=Bilingual(
        "cosine of the embeddings of answer and expected answer (the nearest of several), below 0 as 0, x 100; "
        "comparable only between scores of one embedding model",
        "답변과 기대 답변(여럿이면 가장 가까운 것)의 임베딩 코사인(음수는 0) x 100. "
        "같은 임베딩 모델의 점수끼리만 비교 가능",
    ),
    source="001",
    inputs=("reference",),
    review_form=ReviewForm.NONE,
)


def texts_of(question: QuestionSpec, answer: AnswerSpec) -> tuple[str, ...] | Result:
    """The answer and the expected answers, which are to be embedded; or the result that needs no embedding: not
    applicable (``no_reference``) without an expected answer, 0 for an empty answer."""
    references = tuple(reference for reference in question.references if reference.strip())
    if not references:
        return Result.not_applicable("no_reference")
    if not answer.text.strip():
        return Result.scored(0.0, detail={"empty": True})
    return (answer.text, *references)


def semantic_similarity(texts: tuple[str, ...], vectors: Mapping[str, Vector], provenance: Mapping[str, Any]) -> Result:
    """Between 0 and 100; the raw cosine and which expected answer was the nearest (from 0) stand in the detail."""
    said, *references = texts
    cosines = [cosine(vectors[said], vectors[reference]) for reference in references]
    nearest = max(range(len(cosines)), key=cosines.__getitem__)
    return Result.scored(
        percent(cosines[nearest]),
        detail={"cosine": cosines[nearest], "reference": nearest, "embeddings": dict(provenance)},
    )
