"""A report as tables: one row per answer, and one per metric, for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaluation.files.export import Cell
from review.evidence.effective import Effective
from review.reports.figure import Figure
from review.reports.report import Report

ABOUT = ("question_id", "sample", "category", "difficulty", "question", "answer", "latency_seconds", "score")
OF_METRIC = ("", "_judge", "_source", "_reason")
FIGURES = ("figure", "estimate", "value", "low", "high", "target", "n", "withheld")


def answer_header(report: Report) -> list[str]:
    """The columns of an answer, four per metric: effective value, the judge's (or rule's), source, reason."""
    return [*ABOUT, *(line.name + part for line in report.metrics for part in OF_METRIC)]


def answer_rows(report: Report, texts: Mapping[int, str]) -> Iterator[list[Cell]]:
    """One row per answer; ``texts`` are the answers' texts by id."""
    names = [line.name for line in report.metrics]
    for line in report.answers:
        answer = line.answer
        about: list[Cell] = [answer.question_id, answer.sample, answer.category, answer.difficulty, answer.question]
        about += [texts.get(answer.answer_id, ""), answer.latency_seconds, line.score]
        yield about + [cell for name in names for cell in _cells(line.values.get(name))]


def figure_rows(report: Report) -> Iterator[list[Cell]]:
    """The overall score and every metric, each three ways."""
    overall = report.overall
    parts = [(str(overall.label), overall.part_only)] if overall.part_only else []
    yield from _three("overall", overall.judge_only, overall.reviewed, overall.corrected)
    for name, figure in parts:
        yield _figure(name, f"weight {overall.weight:.2f}", figure)
    for line in report.metrics:
        yield from _three(line.name, line.judge_only, line.reviewed, line.corrected)


def _cells(value: Effective | None) -> Sequence[Cell]:
    if value is None:
        return [None, None, None, None]
    counts = value.label if value.value is None else value.value
    return [counts, value.judged.answer if value.judged else None, str(value.source), value.reason]


def _three(name: str, judge_only: Figure, reviewed: Figure, corrected: Figure) -> Iterator[list[Cell]]:
    for estimate, figure in (("judge_only", judge_only), ("reviewed", reviewed), ("corrected", corrected)):
        yield _figure(name, estimate, figure)


def _figure(name: str, estimate: str, figure: Figure) -> list[Cell]:
    return [name, estimate, figure.value, figure.low, figure.high, figure.target, figure.n, figure.withheld]
