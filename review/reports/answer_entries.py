"""What a report says of each answer, declared once: its facts, and the value of every metric with whose it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from evaluation.runs.costs import Spending
from review.evidence.effective import Effective
from review.reports.entries import Entry, Output, Section, only
from review.reports.report import AnswerLine, Report
from review.reports.sections import HTML, MARKDOWN, PAGE, TABLES, spending_json

DETAILS = only(Output.JSON, Output.JSONL)  # what JSON and JSON Lines say of an answer


@dataclass(frozen=True, slots=True)
class ToldAnswer:
    """An answer of the report with what stands beside it in an export: its text, its fields in the terms of the
    profile's source, and what its calls cost."""

    line: AnswerLine
    text: str = ""
    fields: Mapping[str, Any] | None = None
    cost: Spending | None = None


def _values(told: ToldAnswer) -> Iterator[tuple[str, Effective]]:
    return iter(told.line.values.items())


def _value(one: Effective) -> float | str | None:
    return one.label if one.value is None else one.value


def _judged(one: Effective) -> float | str | None:
    return one.judged.answer if one.judged else None


VALUES: Section[ToldAnswer, Effective] = Section(
    "metrics",
    _values,
    [
        Entry("value", _value, "the value that counts", DETAILS | TABLES, column=""),
        Entry("judge", _judged, "what the judge or rule said", TABLES),
        Entry("source", lambda v: str(v.source), "whose value counts", DETAILS | TABLES),
        Entry("status", lambda v: str(v.status or "pending"), "scored, failed, not applicable, pending", DETAILS),
        Entry("reason", lambda v: v.reason, "why there is no value", DETAILS | TABLES, if_any=True),
        Entry("unresolved", lambda v: v.unresolved or None, "whether experts are tied", DETAILS, if_any=True),
        Entry("judge", _judged, "what the judge or rule said", DETAILS),
    ],
)

ANSWERS: Section[Report, ToldAnswer] = Section(
    "details",
    lambda report: ((str(line.answer.answer_id), ToldAnswer(line)) for line in report.answers),
    [
        Entry("id", lambda a: a.line.answer.question_id, "the question's id", DETAILS | TABLES, column="question_id"),
        Entry("answer_id", lambda a: a.line.answer.answer_id, "number of the answer", DETAILS),
        Entry("sample", lambda a: a.line.answer.sample, "which of several answers, from 1", DETAILS | TABLES),
        Entry("category", lambda a: a.line.answer.category, "the question's category", DETAILS | TABLES),
        Entry("difficulty", lambda a: a.line.answer.difficulty, "the question's difficulty", DETAILS | TABLES),
        Entry("question", lambda a: a.line.answer.question, "the question's text", DETAILS | TABLES),
        Entry("response", lambda a: a.text, "the answer's text", DETAILS | TABLES, column="answer"),
        Entry(
            "latency_seconds",
            lambda a: a.line.answer.latency_seconds,
            "seconds from request to complete answer",
            DETAILS | TABLES,
            digits=1,
        ),
        Entry(
            "score",
            lambda a: a.line.score,
            "its share of the parts that apply to it, 0 to 1; for run-mean profiles it only ranks answers",
            DETAILS | TABLES | {HTML, PAGE, MARKDOWN},
            _("Score"),
            digits=2,
        ),
        VALUES,
        Entry("cost", lambda a: spending_json(a.cost) if a.cost else None, "what its calls cost", DETAILS, if_any=True),
        Entry("source", lambda a: a.fields, "its fields in the profile's source", DETAILS, if_any=True),
    ],
)
