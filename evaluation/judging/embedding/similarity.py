"""Embedding interfaces and metrics.

A call embeds a few texts, and every fault is an outcome. Vectors are compared by cosine and cached under the hash of
their text.

The metrics follow RAGAS. Answer relevance compares the question with questions that a judge wrote from the answer.
Semantic similarity compares the answer with the nearest reference; it does not measure correctness, because a sentence
and its negation are close. BERTScore follows Zhang et al., "BERTScore: Evaluating Text Generation with BERT" (2020),
without inverse document frequencies: the mean over the tokens of one text of the largest cosine with a token of the
other. Special tokens can be matched but are not averaged, as in the authors' package."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from evaluation.core.metric_specs import Bilingual, MetricKind, MetricSpec
from evaluation.core.samples import AnswerSpec, Finding, FrozenModel, QuestionSpec, Result
from evaluation.core.scales import PERCENT, ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import CallResult

# Values in place of an endpoint name: the local model, and no embeddings.
LOCAL, NONE = "local", "none"


class EmbeddingChoice(FrozenModel):
    """Embeddings of a run: an endpoint (its row) with a model, or a local model identified by the hash of its files."""

    endpoint: int | None = None
    model: str = ""
    sha256: str = ""


class TokenChoice(FrozenModel):
    """Local model of BERTScore by the hash of its files, the compared layer (from 1), and the F1 of unrelated texts if
    scores are rescaled."""

    sha256: str
    layer: int = Field(ge=1, le=200)
    baseline: float | None = Field(default=None, ge=0, lt=1, allow_inf_nan=False)


Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingResult(CallResult):
    """Result of one embedding call. ``vectors`` follow the order of the texts and are empty unless the outcome is
    ``ok``."""

    vectors: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """Unit-length token embeddings of one text. ``counted`` is false for special tokens; ``truncated``: the text
    exceeded the model's input length."""

    states: NDArray[np.float32]
    counted: Sequence[bool]
    truncated: bool


class TokenEncoder(Protocol):
    """Model with accessible token embeddings. ``name`` and ``digest`` (of its files) identify it."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    def refuses(self, text: str) -> str:
        """Reason code if the text is unsuitable for the model, else an empty string."""
        ...

    def tokens(self, texts: Sequence[str], layer: int) -> list[TokenEmbeddings]:
        """Token embeddings of each text after a layer (from 1)."""
        ...


class Embedder(AbstractContextManager["Embedder"], Protocol):
    """Source of embeddings; a context manager for use in one thread.

    Vectors of one ``space`` are comparable and cached together. ``provenance`` is stored with every score: kind, model
    and origin."""

    @property
    def space(self) -> str: ...

    @property
    def provenance(self) -> Mapping[str, Any]: ...

    def refuses(self, text: str) -> str:
        """Reason code if the text is unsuitable for the model, else an empty string."""
        ...

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        """Make exactly one call for these texts, at most one batch. Server faults are outcomes, not exceptions."""
        ...


MAX_TEXTS = 64
# Per call, unless a single text is longer.
MAX_CHARACTERS = 100_000
_KOREAN_SHARE = 0.1


def text_hash(text: str) -> str:
    """SHA-256 of the text in NFC as 64 hexadecimal digits; the cache key of its embedding."""
    return hashlib.sha256(unicodedata.normalize("NFC", text).encode("utf-8", "replace")).hexdigest()


def is_korean(text: str) -> bool:
    """Return whether at least a tenth of the letters are Hangul."""
    letters = [character for character in unicodedata.normalize("NFC", text) if character.isalpha()]
    hangul = sum("가" <= c <= "힣" or "ㄱ" <= c <= "ㅣ" for c in letters)
    return bool(letters) and hangul / len(letters) >= _KOREAN_SHARE


def batches(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Split distinct texts into calls of at most 64 texts and 100,000 characters."""
    batch: list[str] = []
    characters = 0
    for text in dict.fromkeys(texts):
        if batch and (len(batch) >= MAX_TEXTS or characters + len(text) > MAX_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


# Little-endian, so that databases are portable between machines.
_STORED_DTYPE = np.dtype("<f4")


def cosine(first: Vector, second: Vector) -> float:
    """Cosine of the angle between two vectors, -1 to 1.

    :raises ValueError: if the lengths differ or a vector is zero."""
    if first.shape != second.shape:
        raise ValueError(f"vectors of {first.shape} and {second.shape} do not lie in one space")
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    if not lengths or not math.isfinite(lengths):
        raise ValueError("a vector without length has no direction")
    return max(-1.0, min(1.0, float(a @ b) / lengths))


def percent(share: float) -> float:
    """Clamp a cosine or F1 to 0..1 and multiply by 100."""
    return 100 * max(0.0, min(1.0, share))


def to_bytes(vector: Vector) -> bytes:
    return vector.astype(_STORED_DTYPE).tobytes()


def from_bytes(data: bytes) -> Vector:
    """Inverse of :func:`to_bytes`.

    :raises ValueError: if the bytes are not a vector."""
    return np.frombuffer(data, dtype=_STORED_DTYPE).astype(np.float32)


BERT_SCORE = MetricSpec(
    name="bert_score_f1",
    version=1,
    kind=MetricKind.EMBEDDING,
    scale=Scale(ScaleKind.REAL, 0, 100),
    title=Bilingual("BERTScore F1", "BERTScore F1"),
    formula=Bilingual(
        "2PR / (P + R) x 100, not rescaled; P: mean over the answer's tokens of the largest cosine with a token of the "
        "expected answer (the best of several); R: the reverse; comparable within one model and layer",
        "2PR / (P + R) x 100, 재조정 없음. P는 답변 토큰마다 기대 답변(여럿이면 가장 나은 것) 토큰과의 "
        "최대 코사인 평균, R은 그 반대. 같은 모델과 층의 점수끼리만 비교 가능",
    ),
    source="ragas",
    inputs=("reference",),
    review_form=ReviewForm.NONE,
)


@dataclass(frozen=True, slots=True)
class TokenModel:
    """A model at one of its layers. ``baseline`` is the F1 of unrelated texts, used for rescaling."""

    model: TokenEncoder
    layer: int
    baseline: float | None = None

    @property
    def provenance(self) -> dict[str, Any]:
        """Model, files and layer, stored with every score."""
        fields = {"model": self.model.name, "sha256": self.model.digest, "layer": self.layer}
        return fields if self.baseline is None else {**fields, "baseline": self.baseline}


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """Precision, recall and F1 of a text pair, usually between 0 and 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def bert_score_f1(question: QuestionSpec, answer: AnswerSpec, tokens: TokenModel | None) -> Result:
    """BERTScore F1 from 0 to 100; 0 for an empty answer. The detail holds precision, recall and, with a baseline, the
    rescaled values.

    Not applicable without a reference (``no_reference``), a model (``no_token_model``), or in a language that the model
    does not support (``language``)."""
    references = [reference for reference in question.references if reference.strip()]
    if not references:
        return Result.not_applicable("no_reference")
    if tokens is None:
        return Result.not_applicable("no_token_model")
    if not answer.text.strip():
        return Result.scored(0.0, detail={"empty": True, "tokens": tokens.provenance})
    if refusal := next(filter(None, map(tokens.model.refuses, (answer.text, *references))), ""):
        return Result.not_applicable(refusal, detail={"tokens": tokens.provenance})
    answer_tokens, *reference_tokens = tokens.model.tokens(
        [answer.text.strip(), *(r.strip() for r in references)], tokens.layer
    )
    pairs = [match_tokens(answer_tokens, candidate) for candidate in reference_tokens]
    best = max(range(len(pairs)), key=lambda index: pairs[index].f1)
    return Result.scored(
        percent(pairs[best].f1),
        detail=_score_detail(tokens, pairs[best], best, (answer_tokens, reference_tokens[best])),
    )


def match_tokens(candidate: TokenEmbeddings, reference: TokenEmbeddings) -> TokenMatch:
    """Match the tokens of two texts greedily."""
    similarities = candidate.states @ reference.states.T
    return TokenMatch(
        _counted_mean(similarities.max(axis=1), candidate.counted),
        _counted_mean(similarities.max(axis=0), reference.counted),
    )


def _counted_mean(best: Any, counted: Sequence[bool]) -> float:
    counted_values = best[np.array(counted, dtype=bool)]
    return float(counted_values.mean()) if len(counted_values) else 0.0


def _score_detail(
    tokens: TokenModel, pair: TokenMatch, reference: int, texts: Sequence[TokenEmbeddings]
) -> dict[str, Any]:
    figures = {"precision": pair.precision, "recall": pair.recall, "f1": pair.f1}
    detail: dict[str, Any] = {**figures, "reference": reference, "tokens": tokens.provenance}
    if tokens.baseline is not None:
        base = tokens.baseline
        detail["rescaled"] = {name: (value - base) / (1 - base) for name, value in figures.items()}
    return detail | ({"truncated": True} if any(text.truncated for text in texts) else {})


def answer_relevance(
    question: str, generated: Sequence[str], vectors: Mapping[str, Vector], provenance: Mapping[str, Any]
) -> Result:
    """Mean cosine x 100, clamped at 0, between the question and the generated questions, which become findings.

    :raises ValueError: if no question was generated."""
    if not generated:
        raise ValueError("relevance needs at least one question")
    cosines = [cosine(vectors[question], vectors[text]) for text in generated]
    mean = sum(cosines) / len(cosines)
    return Result.scored(
        percent(mean),
        detail={"cosine": mean, "questions": len(generated), "embeddings": dict(provenance)},
        findings=tuple(
            Finding("question", text, f"{similarity:.4f}") for text, similarity in zip(generated, cosines, strict=True)
        ),
    )


SEMANTIC_SIMILARITY = MetricSpec(
    name="semantic_similarity",
    kind=MetricKind.EMBEDDING,
    scale=PERCENT,
    title=Bilingual("Semantic similarity", "의미 유사도"),
    formula=Bilingual(
        "cosine of the embeddings of answer and expected answer (the nearest of several), below 0 as 0, x 100; "
        "comparable only between scores of one embedding model",
        "답변과 기대 답변(여럿이면 가장 가까운 것)의 임베딩 코사인(음수는 0) x 100. "
        "같은 임베딩 모델의 점수끼리만 비교 가능",
    ),
    source="ragas",
    inputs=("reference",),
    review_form=ReviewForm.NONE,
)


def texts_to_embed(question: QuestionSpec, answer: AnswerSpec) -> tuple[str, ...] | Result:
    """Answer and references to embed, or the result if no embedding is needed: not applicable (``no_reference``)
    without a reference, 0 for an empty answer."""
    references = tuple(reference for reference in question.references if reference.strip())
    if not references:
        return Result.not_applicable("no_reference")
    if not answer.text.strip():
        return Result.scored(0.0, detail={"empty": True})
    return (answer.text, *references)


def semantic_similarity(texts: tuple[str, ...], vectors: Mapping[str, Vector], provenance: Mapping[str, Any]) -> Result:
    """Similarity to the nearest reference, 0 to 100. The detail holds the raw cosine and the index of that
    reference."""
    answer, *references = texts
    cosines = [cosine(vectors[answer], vectors[reference]) for reference in references]
    nearest = max(range(len(cosines)), key=cosines.__getitem__)
    return Result.scored(
        percent(cosines[nearest]),
        detail={"cosine": cosines[nearest], "reference": nearest, "embeddings": dict(provenance)},
    )


EMBEDDING_METRICS: tuple[MetricSpec, ...] = (SEMANTIC_SIMILARITY, BERT_SCORE)
EMBEDDING_NAMES = frozenset(spec.name for spec in EMBEDDING_METRICS)
