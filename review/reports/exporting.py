"""A run's report in a file format; the ending or the asked format chooses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from django.utils.translation import get_language, override

from evaluation.formats.export import ExportFile, Exports, csv_chunks, json_lines, write_whole, xlsx_bytes
from evaluation.models import Answer, Run
from evaluation.runs.experiments import experiment_of
from evaluation.runs.progress import spending_by_answer
from review.agreement.run_agreement import kept_agreement
from review.reports.answer_fields import answer_fields
from review.reports.as_html import html_report
from review.reports.as_json import details, report_json
from review.reports.as_junit import junit_xml
from review.reports.as_markdown import markdown_summary
from review.reports.as_table import FIGURES, answer_table, figure_rows
from review.reports.entries import Output
from review.reports.gate import Gate
from review.reports.gathering import Gathered, gather
from review.reports.lines import AnswerLine, lowest
from review.reports.report import Report, report_of
from review.reports.sections import ToldAnswer

# What lies on higher floors is handed in by entrances: the plots of a run as HTML, and the next review worth while.
Pictures = Callable[[Run], str]
Planned = Callable[[Gathered], Mapping[str, object] | None]


@dataclass(frozen=True, slots=True)
class Facts:
    """What an export says beside the report: the answers with their texts, the gate where one was asked for, and the
    ``pictures`` of a format that shows some; ``experiment`` is the run as an experiment file."""

    answers: Iterable[ToldAnswer]
    gate: Gate | None = None
    pictures: str = ""
    experiment: str = ""


def export(
    run: Run,
    format_name: str,
    gate: Gate | None = None,
    *,
    pictures: Pictures | None = None,
    planned: Planned | None = None,
    basis: Gathered | None = None,
) -> ExportFile:
    """The run's report in a format, with the outcome of a gate, and with pictures and the next review in a format that
    can hold them; ``basis`` is what is gathered of it, where that is at hand.

    :raises UnknownName: for a format that is not among :data:`REPORT_EXPORTS`.
    """
    wants, basis = REPORT_EXPORTS.checked(format_name), basis or gather(run)
    plan = planned(basis) if planned and wants in PLANNED else None
    report = dataclasses.replace(report_of(basis), gate=gate.to_dict() if gate else None, next_review=plan)
    if wants in WITH_AGREEMENT:
        report = dataclasses.replace(report, agreement=kept_agreement(run))
    answers: Iterable[ToldAnswer]
    if wants in SHORTENED:
        answers = _told(lowest(report.answers))
    else:
        answers = _answers(basis, report, with_fields=wants in WITH_FIELDS)
    drawn = pictures(run) if pictures and wants in PICTURED else ""
    experiment = experiment_of(run) if wants == EXPERIMENT else ""
    return _written(run, format_name, report, Facts(answers, gate, drawn, experiment))


def export_kept(
    run: Run,
    format_name: str,
    report: Report,
    lines: Sequence[AnswerLine],
    gate: Gate | None = None,
    *,
    plan: Mapping[str, object] | None = None,
    pictures: str = "",
) -> ExportFile:
    """A report that is there already in one of the formats :data:`BRIEF`, with the answers that stand in it."""
    planned = plan if format_name in PLANNED else None
    told = dataclasses.replace(report, gate=gate.to_dict() if gate else None, next_review=planned)
    experiment = experiment_of(run) if format_name == EXPERIMENT else ""
    return _written(run, format_name, told, Facts(_told(lines), gate, pictures, experiment))


def _written(run: Run, format_name: str, report: Report, facts: Facts) -> ExportFile:
    made = REPORT_EXPORTS.write(format_name, f"run-{run.pk}", report, facts)
    return dataclasses.replace(made, chunks=in_language(made.chunks, get_language()))


def in_language(chunks: Iterator[bytes], language: str | None) -> Iterator[bytes]:
    """The chunks, each made in this language: a response is streamed after its request's language was put off."""
    while True:
        with override(language):
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def export_to(run: Run, path: Path, gate: Gate | None = None, **drawn: Any) -> None:
    """Write the run's report to a file whose ending names the format; the file appears whole or not at all. ``drawn``
    is what :func:`export` takes beside the gate.

    :raises UnknownName: for an unknown ending.
    :raises OSError: where the file cannot be written.
    """
    write_whole(path, export(run, REPORT_EXPORTS.format_of(path), gate, **drawn).chunks)


def _told(lines: Sequence[AnswerLine]) -> list[ToldAnswer]:
    """The answers named with their texts. One query."""
    texts = _texts([line.answer.answer_id for line in lines])
    return [ToldAnswer(line, texts.get(line.answer.answer_id, "")) for line in lines]


def _texts(answer_ids: Collection[int]) -> dict[int, str]:
    return dict(Answer.objects.filter(pk__in=answer_ids).values_list("pk", "text"))


TOLD_AT_ONCE = 2_000


def _answers(basis: Gathered, report: Report, *, with_fields: bool) -> Iterator[ToldAnswer]:
    """The answers with their texts, and with their fields and costs. Some are read at a time, so that those of many
    never stand together."""
    costs = spending_by_answer(basis.run) if with_fields else {}
    fields = answer_fields(basis, TOLD_AT_ONCE) if with_fields else repeat({})
    for start in range(0, len(report.answers), TOLD_AT_ONCE):
        lines = {line.answer.answer_id: line for line in report.answers[start : start + TOLD_AT_ONCE]}
        texts, found = _texts(lines), next(fields)
        for pk, line in lines.items():
            yield ToldAnswer(line, texts.get(pk, ""), found.get(pk), costs.get(pk))


def _json(report: Report, facts: Facts) -> Iterator[bytes]:
    return (piece.encode() for piece in report_json(report, facts.answers))


def _jsonl(report: Report, facts: Facts) -> Iterator[bytes]:
    return (line.encode() for line in json_lines(details(report, facts.answers)))


def _csv(report: Report, facts: Facts) -> Iterator[bytes]:
    return csv_chunks(*answer_table(report, facts.answers, Output.CSV))


def _xlsx(report: Report, facts: Facts) -> Iterator[bytes]:
    answers = answer_table(report, facts.answers, Output.XLSX)
    yield xlsx_bytes({"answers": answers, "figures": (FIGURES, figure_rows(report))})


def _junit(report: Report, facts: Facts) -> Iterator[bytes]:
    yield junit_xml(report, facts.gate)


def _markdown(report: Report, facts: Facts) -> Iterator[bytes]:
    yield markdown_summary(report, facts.gate).encode()


def _html(report: Report, facts: Facts) -> Iterator[bytes]:
    yield html_report(report, list(facts.answers), facts.gate, facts.pictures).encode()


def _experiment(report: Report, facts: Facts) -> Iterator[bytes]:
    yield facts.experiment.encode()


EXPERIMENT, HTML = "experiment", "html"
REPORT_EXPORTS = Exports(
    "a report",
    {
        "json": _json,
        "jsonl": _jsonl,
        "csv": _csv,
        "xlsx": _xlsx,
        HTML: _html,
        "junit": _junit,
        "md": _markdown,
        EXPERIMENT: _experiment,
    },
)
WITH_FIELDS = {"json", "jsonl"}  # these have the source's fields and the cost of each answer
WITH_AGREEMENT = {"json"}  # with its intervals; in HTML it stands with the plots
PICTURED = {HTML}  # plots
SHORTENED = {HTML}  # at most so many answers that mail and browsers can take it
PLANNED = {"json", HTML, "md"}  # the next review
BRIEF = {HTML, "junit", "md", EXPERIMENT}  # nothing of answers beyond those listed: made of what is kept
