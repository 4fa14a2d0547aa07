"""Questions, answers, scores and ratings as records, in our own form or in that of another tool: what a shape's
``writes`` makes of a record, its ``questions`` and ``answers`` read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jmespath

from evaluation.core.errors import UnknownName
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.formats.export import json_lines
from evaluation.formats.shaping import shipped
from evaluation.formats.trec import qrels_line, run_lines, topic_line

OWN = "concord"  # questions and answers with everything that an import takes
RATINGS = "ratings"  # what import_ratings takes


@dataclass(frozen=True, slots=True)
class Record:
    """One answer with its question. ``answer`` is ``None`` where there is none; ``answered`` is false where it holds
    passages only. ``first``: of the answers to its question. ``scores`` and ``ratings`` as ``import_ratings`` takes
    them; ``values`` are the figures that count, by metric."""

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

    def plain(self) -> dict[str, Any]:
        """The record as JSON knows it, under our own names."""
        question = self.question.model_dump(mode="json")
        answer = self.answer
        contexts = None
        if answer is not None and answer.contexts is not None:
            contexts = [_context(one) for one in answer.contexts]
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
            "scores": [dict(one) for one in self.scores],
            "ratings": [dict(one) for one in self.ratings],
            "values": dict(self.values or {}),
        }


def _context(one: ContextSpec) -> dict[str, Any]:
    named = {"id": one.chunk_id, "score": one.score, "source": one.source, "metadata": dict(one.metadata)}
    return {key: value for key, value in named.items() if value not in (None, "", {})} | {"text": one.text}


_TREC = {"trec_topics": topic_line, "trec_run": run_lines, "trec_qrels": qrels_line}


def forms() -> tuple[str, ...]:
    """The names of the forms that records can be written in."""
    return (OWN, RATINGS, *(name for name, shape in shipped().items() if shape.writes and name != OWN), *_TREC)


def ending_of(form: str) -> str:
    """The ending of a file in this form.

    :raises UnknownName: for no form.
    """
    if form not in forms():
        raise UnknownName("form", form, list(forms()))
    if form in _TREC:
        return "txt"
    return "json" if form != RATINGS and shipped()[form].document else "jsonl"


def written(form: str, records: Iterable[Record]) -> Iterator[str]:
    """The file of the records: JSON Lines, or where the tool reads one document only, that; TREC's lines.

    :raises UnknownName: for no form.
    """
    if form not in forms():
        raise UnknownName("form", form, list(forms()))
    if form in _TREC:
        return (text for record in records for text in _TREC[form](record.plain()))
    if form == RATINGS:
        return json_lines(row for record in records for row in (*record.scores, *record.ratings))
    shape = shipped()[form]
    expression = jmespath.compile(shape.writes)
    # A tool that holds questions only gets each once.
    wanted = (record for record in records if record.first or shape.answers)
    rows: Iterator[dict[str, Any]] = (expression.search(record.plain()) for record in wanted)
    return _document(shape.rows, rows) if shape.document else json_lines(rows)


def _document(name: str, rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """One JSON document with the rows under the name."""
    yield json.dumps({name: list(rows)}, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
