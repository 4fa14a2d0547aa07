"""What a judge is shown of a question and an answer: named data blocks of plain JSON values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.judging.asking import Case


def data_blocks(question: QuestionSpec, answer: AnswerSpec, inputs: Collection[str]) -> dict[str, Any]:
    """The blocks of a plain request, the answer last. ``inputs`` are those that the metrics declare; the expected
    keywords stand in for a missing reference as required points."""
    blocks: dict[str, Any] = {}
    if "persona" in inputs and question.persona:
        blocks["persona"] = question.persona
    if "history" in inputs and question.history:
        blocks["history"] = list(question.history)
    blocks["question"] = question.text
    if "reference" in inputs:
        blocks |= reference_block(question)
    if "required_info" in inputs and question.required_info:
        blocks["required_info"] = list(question.required_info)
    if "clarification_ok" in inputs and question.clarification_ok:
        blocks["clarification_ok"] = True
    if "contexts" in inputs and answer.contexts is not None:
        blocks["contexts"] = [context.text for context in answer.contexts]
    if "passages" in inputs and answer.contexts is not None:
        blocks["contexts"] = numbered(answer.contexts)
    return {**blocks, "answer": answer.text}


def reference_block(question: QuestionSpec) -> dict[str, Any]:
    """The expected answers, else the expected keywords as required points, else nothing."""
    if question.references:
        return {"reference": list(question.references)}
    if question.keywords:
        return {"required_points": [list(alternatives) for alternatives in question.keywords]}
    return {}


def numbered(contexts: Collection[ContextSpec], first: int = 1) -> list[dict[str, Any]]:
    """Passages with the number a judge refers to them by, and where they come from."""
    return [
        {"number": number, **({"source": source} if (source := source_of(context)) else {}), "text": context.text}
        for number, context in enumerate(contexts, start=first)
    ]


def source_of(context: ContextSpec) -> str:
    """Where a passage comes from, as far as it says: its source, else its regulation and article, else its title."""
    said = context.metadata
    regulation = " ".join(str(said[key]) for key in ("regulation", "article") if said.get(key))
    return context.source or regulation or str(said.get("title") or "")


def shown(case: Case) -> frozenset[str]:
    """Every input that the case's metrics need or are shown."""
    return frozenset(name for spec in case.specs for name in (*spec.inputs, *spec.optional_inputs))
