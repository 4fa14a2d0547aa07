"""Filters that remove generated questions before a person sees them, cheap ones first.

The first filters only read; the others use replies of a model. The filter and its evidence are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contrib.generation.kinds import QuestionKind
from contrib.generation.models import DraftQuestion
from contrib.generation.prompts import AnsweringPassages
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.question_checks import SIMILARITY_THRESHOLD, find_leak, trigram_similarity
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.normalise import folded

# In characters.
MAX_QUESTION_LENGTH = 600
MAX_ANSWER_LENGTH = 4_000
# Ratio of the BM25 score of the question's passage to that of the best other one.
TRIVIAL_RATIO = 3.0
Filter = DraftQuestion.Filter


@dataclass(frozen=True, slots=True)
class Removal:
    """The filter that removed a question; ``detail`` is its evidence as JSON."""

    reason: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def read_question(raw: Mapping[str, Any], kind: QuestionKind, chunk_ids: Sequence[str]) -> QuestionSpec:
    """Parse a question of the writer; its ``id`` is assigned on acceptance. A negative question names no passage."""
    keywords = [word.strip() for word in raw["keywords"] if word.strip()]
    return QuestionSpec(
        id="-",
        category=kind.name,
        difficulty=kind.difficulty,
        hops=kind.hops,
        text=raw["question"].strip(),
        references=tuple(filter(None, [raw["answer"].strip()])),
        keywords=() if kind.is_negative else tuple((word,) for word in dict.fromkeys(keywords)),
        required_info=tuple(filter(None, (fact.strip() for fact in raw["required_info"]))),
        ground_truth_chunk_ids=() if kind.is_negative else tuple(chunk_ids),
        group="+".join(sorted(chunk_ids))[:200],
        tags=("synthetic",),
    )


def filter_without_calls(
    question: QuestionSpec,
    passages: Sequence[str],
    accepted: Iterable[QuestionSpec],
    scores: tuple[float, float] | None,
) -> Removal | None:
    """Return the first removal that needs no call, or ``None``.

    ``accepted`` are the questions that passed so far. ``scores`` are the BM25 scores of the question's only passage and
    of the best other one; ``None`` with several passages or none."""
    if not question.text or not question.references or len(question.text) > MAX_QUESTION_LENGTH:
        return Removal(Filter.NO_QUESTION)
    if len(question.references[0]) > MAX_ANSWER_LENGTH or "?" not in folded(question.text):
        return Removal(Filter.NO_QUESTION)
    if leak := find_leak(question, passages):
        return Removal(Filter.LEAKED, {"words": leak})
    for accepted_question in accepted:
        if is_duplicate(question, accepted_question):
            return Removal(Filter.DUPLICATE, {"of": accepted_question.text})
    if scores is not None and scores[0] > 0 and scores[0] >= TRIVIAL_RATIO * scores[1]:
        return Removal(Filter.TRIVIAL, {"score": round(scores[0], 3), "next": round(scores[1], 3)})
    return None


def is_duplicate(first: QuestionSpec, second: QuestionSpec) -> bool:
    """Return whether two questions have similar words and the same passages or similar answers."""
    if trigram_similarity(first.text, second.text) < SIMILARITY_THRESHOLD:
        return False
    return (
        first.group == second.group
        or trigram_similarity(first.references[0], second.references[0]) >= SIMILARITY_THRESHOLD
    )


def filter_by_passages(
    question: QuestionSpec, kind: QuestionKind, answering: AnsweringPassages, own_indices: Collection[int]
) -> Removal | None:
    """Return the removal that follows from the passages which, by a model, answer the question.

    ``own_indices`` are those of the question's passages among the ones shown."""
    detail = {"needed": sorted(answering.needed), "alone": sorted(answering.sufficient), "own": sorted(own_indices)}
    if kind.is_negative:
        return Removal(Filter.ELSEWHERE, detail) if answering.answerable or answering.sufficient else None
    if kind.needs_all_passages:
        if not answering.answerable or not answering.needed >= set(own_indices):
            reason = Filter.ELSEWHERE if answering.answerable and answering.sufficient else Filter.NOT_ANSWERABLE
            return Removal(reason, detail)
        return Removal(Filter.ELSEWHERE, detail) if answering.sufficient else None
    if not answering.answerable or not answering.sufficient >= set(own_indices):
        reason = (
            Filter.ELSEWHERE
            if answering.answerable and answering.sufficient - set(own_indices)
            else Filter.NOT_ANSWERABLE
        )
        return Removal(reason, detail)
    return Removal(Filter.ELSEWHERE, detail) if answering.sufficient - set(own_indices) else None


def filter_known(question: QuestionSpec, claims_to_know: bool, answer: str) -> Removal | None:
    """Return a removal if the model's closed-book answer contains every keyword; ``None`` for questions without
    keywords."""
    if (
        not claims_to_know
        or not question.keywords
        or not all(find_keyword(keyword, answer) for keyword in question.keywords)
    ):
        return None
    return Removal(Filter.KNOWN, {"answer": answer[:500]})
