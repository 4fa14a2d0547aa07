"""The metrics made of embeddings (all source 001): answer relevance compares the question with those that a judge wrote
from the answer, semantic similarity the answer with the nearest expected one, BERTScore their tokens.

Semantic similarity is no correctness: a sentence and its negation lie near each other, and what is near depends on the
model. BERTScore is that of Zhang and others, "BERTScore: Evaluating Text Generation with BERT" (2020), without inverse
document frequencies: the mean over the tokens of one text of the largest cosine with any token of the other. The marks
around a text may be found but do not count, as in the authors' package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.core.registry import PERCENT, Bilingual, Kind, MetricSpec, ReviewForm, Scale, ScaleKind
from evaluation.core.samples import AnswerSpec, Finding, QuestionSpec, Result
from evaluation.embedding.protocol import TokenEncoder, Tokens, Vector, cosine, percent

BERT_SCORE = MetricSpec(
    name="bert_score_f1",
    version=1,
    kind=Kind.EMBEDDING,
    scale=Scale(ScaleKind.REAL, 0, 100),
    title=Bilingual("BERTScore F1", "BERTScore F1"),
    formula=Bilingual(
        "2PR / (P + R) x 100, not rescaled; P: mean over the answer's tokens of the largest cosine with a token of the "
        "expected answer (the best of several), R the other way round; comparable within one model and layer",
        "2PR / (P + R) x 100, 재조정 없음. P는 답변 토큰마다 기대 답변(여럿이면 가장 나은 것) 토큰과의 "
        "최대 코사인 평균, R은 그 반대. 같은 모델과 층의 점수끼리만 비교 가능",
    ),
    source="001",
    inputs=("reference",),
    review_form=ReviewForm.NONE,
)


@dataclass(frozen=True, slots=True)
class TokenModel:
    """A model behind one of its layers. ``baseline`` is the F1 of unrelated texts, by which scores may be rescaled."""

    model: TokenEncoder
    layer: int
    baseline: float | None = None

    @property
    def provenance(self) -> dict[str, Any]:
        """What stands on every score."""
        said = {"model": self.model.name, "sha256": self.model.digest, "layer": self.layer}
        return said if self.baseline is None else {**said, "baseline": self.baseline}


@dataclass(frozen=True, slots=True)
class Matched:
    """Precision, recall and F1 of one pair, usually between 0 and 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 where both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def bert_score_f1(question: QuestionSpec, answer: AnswerSpec, tokens: TokenModel | None) -> Result:
    """Between 0 and 100; precision, recall and, with a baseline, the rescaled values stand in the detail. Not
    applicable without an expected answer (``no_reference``), a model (``no_token_model``) or in a language that the
    model does not know (``language``); 0 for an empty answer."""
    references = [reference for reference in question.references if reference.strip()]
    if not references:
        return Result.not_applicable("no_reference")
    if tokens is None:
        return Result.not_applicable("no_token_model")
    if not answer.text.strip():
        return Result.scored(0.0, detail={"empty": True, "tokens": tokens.provenance})
    if refused := next(filter(None, map(tokens.model.refuses, (answer.text, *references))), ""):
        return Result.not_applicable(refused, detail={"tokens": tokens.provenance})
    said, *expected = tokens.model.tokens([answer.text.strip(), *(r.strip() for r in references)], tokens.layer)
    pairs = [matched(said, other) for other in expected]
    best = max(range(len(pairs)), key=lambda place: pairs[place].f1)
    return Result.scored(percent(pairs[best].f1), detail=_detail(tokens, pairs[best], best, (said, expected[best])))


def matched(candidate: Tokens, reference: Tokens) -> Matched:
    """Greedy matching of the tokens of two texts."""
    near = candidate.states @ reference.states.T
    return Matched(_mean(near.max(axis=1), candidate.counts), _mean(near.max(axis=0), reference.counts))


def _mean(best: Any, counts: Sequence[bool]) -> float:
    kept = best[np.array(counts, dtype=bool)]
    return float(kept.mean()) if len(kept) else 0.0


def _detail(tokens: TokenModel, pair: Matched, reference: int, read: Sequence[Tokens]) -> dict[str, Any]:
    figures = {"precision": pair.precision, "recall": pair.recall, "f1": pair.f1}
    detail: dict[str, Any] = {**figures, "reference": reference, "tokens": tokens.provenance}
    if tokens.baseline is not None:
        base = tokens.baseline
        detail["rescaled"] = {name: (value - base) / (1 - base) for name, value in figures.items()}
    return detail | ({"truncated": True} if any(text.truncated for text in read) else {})


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


SEMANTIC_SIMILARITY = MetricSpec(
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


EMBEDDING_METRICS: tuple[MetricSpec, ...] = (SEMANTIC_SIMILARITY, BERT_SCORE)
EMBEDDING_NAMES = frozenset(spec.name for spec in EMBEDDING_METRICS)
