"""Embeddings and the metrics made of them.

Which models a run embeds with, what gives embeddings and what comes back: one call embeds a few texts, and every fault
is an outcome. Vectors are compared by cosine and kept as bytes under the hash of their text.

The metrics are source 001's: answer relevance compares the question with those that a judge wrote from the answer,
semantic similarity the answer with the nearest expected one, BERTScore their tokens. Semantic similarity is no
correctness: a sentence and its negation lie near each other, and what is near depends on the model. BERTScore is that
of Zhang and others, "BERTScore: Evaluating Text Generation with BERT" (2020), without inverse document frequencies: the
mean over the tokens of one text of the largest cosine with any token of the other. The marks around a text may be found
but do not count, as in the authors' package.
"""

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

from evaluation.core.metric_specs import Bilingual, Kind, MetricSpec
from evaluation.core.samples import AnswerSpec, Finding, FrozenModel, QuestionSpec, Result
from evaluation.core.scales import PERCENT, ReviewForm, Scale, ScaleKind
from evaluation.judging.calls import Ended

LOCAL, NONE = "local", "none"  # in place of an endpoint's name: the local model, and no embeddings


class EmbeddingChoice(FrozenModel):
    """The embeddings of a run: of an endpoint (its row) with a model, or without one of a local model by the hash of
    its files, so that another model in its place is noticed."""

    endpoint: int | None = None
    model: str = ""
    sha256: str = ""


class TokenChoice(FrozenModel):
    """The local model of BERTScore by the hash of its files, the layer whose states are compared (from 1), and the
    F1 of unrelated texts where scores are rescaled too."""

    sha256: str
    layer: int = Field(ge=1, le=200)
    baseline: float | None = Field(default=None, ge=0, lt=1, allow_inf_nan=False)


Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded(Ended):
    """How one call ended. ``vectors`` are in the order of the texts and there only where the outcome is ``ok``."""

    vectors: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token embeddings of one text, of length 1 each. ``counts`` is false for the marks around the text;
    ``truncated`` says that the text was longer than the model reads."""

    states: NDArray[np.float32]
    counts: Sequence[bool]
    truncated: bool


class TokenEncoder(Protocol):
    """A model whose token embeddings can be had. ``name`` and ``digest`` (of its files) say which it is."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    def refuses(self, text: str) -> str:
        """The reason code why the text is not for this model, or an empty text."""
        ...

    def tokens(self, texts: Sequence[str], layer: int) -> list[Tokens]:
        """The token embeddings of each text behind a layer (from 1)."""
        ...


class Embedder(AbstractContextManager["Embedder"], Protocol):
    """A source of embeddings, to be used as a context manager from one thread.

    ``space`` identifies the space its vectors lie in: vectors of one space may be compared and kept. ``provenance`` is
    what stands on every score: kind, model, and where it runs.
    """

    @property
    def space(self) -> str: ...

    @property
    def provenance(self) -> Mapping[str, Any]: ...

    def refuses(self, text: str) -> str:
        """The reason code why the text is not for this model, or an empty text."""
        ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Exactly one call for these texts, at most one batch; never raises for a fault of the server."""
        ...


MOST_TEXTS = 64
MOST_CHARACTERS = 100_000  # of one call, unless a single text is longer
_KOREAN_SHARE = 0.1


def text_hash(text: str) -> str:
    """SHA-256 of the text in NFC, as 64 hexadecimal digits: what its embedding is kept under."""
    return hashlib.sha256(unicodedata.normalize("NFC", text).encode("utf-8", "replace")).hexdigest()


def is_korean(text: str) -> bool:
    """Whether at least a tenth of the letters are Hangul."""
    letters = [character for character in unicodedata.normalize("NFC", text) if character.isalpha()]
    hangul = sum("가" <= c <= "힣" or "ㄱ" <= c <= "ㅣ" for c in letters)
    return bool(letters) and hangul / len(letters) >= _KOREAN_SHARE


def batches(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Distinct texts in calls of at most 64 texts and 100,000 characters."""
    batch: list[str] = []
    characters = 0
    for text in dict.fromkeys(texts):
        if batch and (len(batch) >= MOST_TEXTS or characters + len(text) > MOST_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


_BYTES = np.dtype("<f4")  # little-endian, so that a database may move between machines


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of the angle between two vectors, between -1 and 1.

    :raises ValueError: when they differ in length or one has none.
    """
    if one.shape != other.shape:
        raise ValueError(f"vectors of {one.shape} and {other.shape} do not lie in one space")
    a, b = one.astype(np.float64), other.astype(np.float64)
    lengths = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    if not lengths or not math.isfinite(lengths):
        raise ValueError("a vector without length has no direction")
    return max(-1.0, min(1.0, float(a @ b) / lengths))


def percent(share: float) -> float:
    """A cosine or F1 as the metrics give it: below 0 as 0, above 1 as 1, x 100."""
    return 100 * max(0.0, min(1.0, share))


def to_bytes(vector: Vector) -> bytes:
    """Four bytes per dimension."""
    return vector.astype(_BYTES).tobytes()


def from_bytes(kept: bytes) -> Vector:
    """The vector of :func:`to_bytes`.

    :raises ValueError: when the bytes are no vector.
    """
    return np.frombuffer(kept, dtype=_BYTES).astype(np.float32)


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
