"""What takes a written question out before a person sees it, the cheap filters first: those that read, then those that
a model was asked for. Which filter took it out, and what it saw, is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contrib.generation.kinds import Kind
from contrib.generation.models import DraftQuestion
from contrib.generation.prompts import Located
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.checks import ALIKE, alike, leaked
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.normalise import folded

LONGEST_QUESTION = 600  # characters
LONGEST_ANSWER = 4_000
TRIVIAL_RATIO = 3.0  # of the passage's BM25 score to that of the best other one
Filter = DraftQuestion.Filter


@dataclass(frozen=True, slots=True)
class Removed:
    """Why a question is out; ``detail`` holds what was seen, as JSON."""

    by: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def read_question(written: Mapping[str, Any], kind: Kind, chunk_ids: Sequence[str]) -> QuestionSpec:
    """A question as the writer gave it; its ``id`` comes when it is accepted. A negative one names no passage: none
    answers it."""
    keywords = [word.strip() for word in written["keywords"] if word.strip()]
    return QuestionSpec(
        id="-",
        category=kind.name,
        difficulty=kind.difficulty,
        hops=kind.hops,
        text=written["question"].strip(),
        references=tuple(filter(None, [written["answer"].strip()])),
        keywords=() if kind.is_negative else tuple((word,) for word in dict.fromkeys(keywords)),
        required_info=tuple(filter(None, (one.strip() for one in written["required_info"]))),
        ground_truth_chunk_ids=() if kind.is_negative else tuple(chunk_ids),
        group="+".join(sorted(chunk_ids))[:200],
        tags=("synthetic",),
    )


def removed_at_sight(
    question: QuestionSpec, passages: Sequence[str], earlier: Iterable[QuestionSpec], scores: tuple[float, float] | None
) -> Removed | None:
    """The first filter that needs no call. ``earlier`` are the questions that stand already; ``scores`` are what BM25
    gives the one passage of the question, and the best other one, ``None`` where it has several or none."""
    if not question.text or not question.references or len(question.text) > LONGEST_QUESTION:
        return Removed(Filter.NO_QUESTION)
    if len(question.references[0]) > LONGEST_ANSWER or "?" not in folded(question.text):
        return Removed(Filter.NO_QUESTION)
    if leak := leaked(question, passages):
        return Removed(Filter.LEAKED, {"words": leak})
    for other in earlier:
        if asks_the_same(question, other):
            return Removed(Filter.DUPLICATE, {"of": other.text})
    if scores is not None and scores[0] > 0 and scores[0] >= TRIVIAL_RATIO * scores[1]:
        return Removed(Filter.TRIVIAL, {"score": round(scores[0], 3), "next": round(scores[1], 3)})
    return None


def asks_the_same(one: QuestionSpec, other: QuestionSpec) -> bool:
    """Whether two questions are worded alike and are about the same passages or have the same answer: the same words
    about another thing are another question."""
    if alike(one.text, other.text) < ALIKE:
        return False
    return one.group == other.group or alike(one.references[0], other.references[0]) >= ALIKE


def removed_by_place(question: QuestionSpec, kind: Kind, found: Located, own: Collection[int]) -> Removed | None:
    """What a model said of the question's ``own`` passages among others."""
    detail = {"needed": sorted(found.needed), "alone": sorted(found.alone), "own": sorted(own)}
    if kind.is_negative:
        return Removed(Filter.ELSEWHERE, detail) if found.answerable or found.alone else None
    if kind.together:
        if not found.answerable or not found.needed >= set(own):
            by = Filter.ELSEWHERE if found.answerable and found.alone else Filter.NOT_ANSWERABLE
            return Removed(by, detail)
        return Removed(Filter.ELSEWHERE, detail) if found.alone else None
    if not found.answerable or not found.alone >= set(own):
        by = Filter.ELSEWHERE if found.answerable and found.alone - set(own) else Filter.NOT_ANSWERABLE
        return Removed(by, detail)
    return Removed(Filter.ELSEWHERE, detail) if found.alone - set(own) else None


def removed_as_known(question: QuestionSpec, known: bool, answer: str) -> Removed | None:
    """Out where the answer that a model gave from memory holds every keyword; a question without keywords is not told
    by this."""
    if not known or not question.keywords or not all(find_keyword(one, answer) for one in question.keywords):
        return None
    return Removed(Filter.KNOWN, {"answer": answer[:500]})
