"""Questions, answers, scores and ratings as records, in Concord's form or another tool's.

A shape's ``writes`` expression creates such a record; its ``questions`` and ``answers`` maps read it back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jmespath

from evaluation.core.errors import UnknownName
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.formats.export import json_lines
from evaluation.formats.shaping import shipped_shapes
from evaluation.formats.trec import qrels_line, run_lines, topic_line

# Questions and answers with everything that an import accepts.
NATIVE = "concord"
# The form that ``import_ratings`` reads.
RATINGS = "ratings"


@dataclass(frozen=True, slots=True)
class Record:
    """One answer with its question.

    ``answer`` is ``None`` if there is none; ``answered`` is false if it holds passages only. ``first``: first answer to
    its question. ``scores`` and ``ratings`` have the form of ``import_ratings``; ``values`` are the effective values by
    metric."""

    question: QuestionSpec
    question_metadata: Mapping[str, Any]
    answer: AnswerSpec | None
    answered: bool = True
    error: str = ""
    sample: int = 0
    first: bool = True
    confidence: float | None = None
    system: str = ""
    answer_metadata: Mapping[str, Any] | None = None
    scores: Sequence[Mapping[str, Any]] = ()
    ratings: Sequence[Mapping[str, Any]] = ()
    values: Mapping[str, float | str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Record as a JSON-compatible map with Concord's field names."""
        question = self.question.model_dump(mode="json")
        answer = self.answer
        contexts = None
        if answer is not None and answer.contexts is not None:
            contexts = [_context_dict(context) for context in answer.contexts]
        ids = answer.retrieved_ids if answer else None
        return {
            "question_id": question.pop("id"),
            "question": question.pop("text"),
            "expected_answer": question.pop("references"),
            "expected_keywords": question.pop("keywords"),
            **question,
            "question_metadata": dict(self.question_metadata),
            "first_of_question": self.first,
            "answer": answer.text if answer and self.answered and not self.error else None,
            "error": self.error or None,
            "contexts": contexts,
            "retrieved_context_ids": None if ids is None else list(ids),
            "latency_seconds": answer.latency_seconds if answer else None,
            "confidence": self.confidence,
            "sample": self.sample,
            "system": self.system,
            "answer_metadata": dict(self.answer_metadata or {}),
            "scores": [dict(score) for score in self.scores],
            "ratings": [dict(rating) for rating in self.ratings],
            "values": dict(self.values or {}),
        }


def _context_dict(context: ContextSpec) -> dict[str, Any]:
    fields = {
        "id": context.chunk_id,
        "score": context.score,
        "source": context.source,
        "metadata": dict(context.metadata),
    }
    return {key: value for key, value in fields.items() if value not in (None, "", {})} | {"text": context.text}


_TREC = {"trec_topics": topic_line, "trec_run": run_lines, "trec_qrels": qrels_line}


def form_names() -> tuple[str, ...]:
    """Names of the forms that records can be written in."""
    return (
        NATIVE,
        RATINGS,
        *(name for name, shape in shipped_shapes().items() if shape.writes and name != NATIVE),
        *_TREC,
    )


def form_extension(form: str) -> str:
    """File extension of a form.

    :raises UnknownName: for an unknown form."""
    if form not in form_names():
        raise UnknownName("form", form, list(form_names()))
    if form in _TREC:
        return "txt"
    return "json" if form != RATINGS and shipped_shapes()[form].document else "jsonl"


def write_records(form: str, records: Iterable[Record]) -> Iterator[str]:
    """Yield the text of the file: JSON Lines, a single JSON document if the tool needs one, or TREC lines.

    :raises UnknownName: for an unknown form."""
    if form not in form_names():
        raise UnknownName("form", form, list(form_names()))
    if form in _TREC:
        return (text for record in records for text in _TREC[form](record.to_dict()))
    if form == RATINGS:
        return json_lines(row for record in records for row in (*record.scores, *record.ratings))
    shape = shipped_shapes()[form]
    expression = jmespath.compile(shape.writes)
    # A form without answers contains each question once.
    selected = (record for record in records if record.first or shape.answers)
    rows: Iterator[dict[str, Any]] = (expression.search(record.to_dict()) for record in selected)
    return _document(shape.rows, rows) if shape.document else json_lines(rows)


def _document(name: str, rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield one JSON document with the rows under ``name``."""
    yield json.dumps({name: list(rows)}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
