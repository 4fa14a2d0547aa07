"""What the retrieval metrics share: the top k retrieved passages against the relevant ones of the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.core.registry import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result


@dataclass(frozen=True, slots=True)
class Ranking:
    """The top ``k`` places of a retrieval. ``gains`` says for each place that is filled whether it brings a relevant
    passage for the first time: a repeated id keeps its place and is not relevant a second time. ``relevant`` is the
    number of distinct relevant passages of the question, at least 1."""

    gains: tuple[bool, ...]
    relevant: int
    k: int
    found: tuple[str, ...]

    @property
    def detail(self) -> dict[str, Any]:
        """What a reader needs to check the figure."""
        return {"k": self.k, "relevant": self.relevant, "retrieved": len(self.gains), "found": list(self.found)}


def ranking(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Ranking | Result:
    """The ranking, or why there is none: ``no_relevant_chunks`` (the question names none), ``does_not_retrieve``,
    ``no_retrieved_ids`` (passages without ids). A system that retrieved nothing has an empty ranking."""
    relevant = frozenset(question.ground_truth_chunk_ids)
    if not relevant:
        return Result.not_applicable("no_relevant_chunks")
    ids = answer.retrieved_ids
    if ids is None:
        if answer.contexts is None:
            return Result.not_applicable("does_not_retrieve")
        ids = tuple(context.chunk_id for context in answer.contexts)
        if ids and not any(ids):
            return Result.not_applicable("no_retrieved_ids")
    found: dict[str, None] = {}
    gains = []
    for chunk_id in ids[: settings.k]:
        gains.append(chunk_id in relevant and chunk_id not in found)
        if gains[-1]:
            found[chunk_id] = None
    return Ranking(tuple(gains), len(relevant), settings.k, tuple(found))
