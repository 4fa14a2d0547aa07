"""Export of a run's report to a file format, chosen by name or file extension."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from django.utils.translation import get_language, override

from evaluation.formats.export import ExportFile, Exports, csv_chunks, json_lines, write_atomically, xlsx_bytes
from evaluation.models import Answer, Run
from evaluation.runs.experiments import export_experiment
from evaluation.runs.progress import spending_by_answer
from review.agreement.run_agreement import cached_agreement
from review.reports.answer_fields import answer_fields
from review.reports.as_html import html_report
from review.reports.as_json import detail_records, report_json
from review.reports.as_junit import junit_xml
from review.reports.as_markdown import markdown_summary
from review.reports.as_table import FIGURES, answer_table, figure_rows
from review.reports.entries import Output
from review.reports.gate import Gate
from review.reports.inputs import ReportInputs, load_inputs
from review.reports.lines import AnswerLine, lowest_scored
from review.reports.report import Report, build_report
from review.reports.sections import AnswerDetail

# Callers from higher layers supply plots as HTML and the next review.
Pictures = Callable[[Run], str]
Planned = Callable[[ReportInputs], Mapping[str, object] | None]


@dataclass(frozen=True, slots=True)
class ExportExtras:
    """Additions to the report: answers with texts, the gate, ``pictures``, and the run as an ``experiment`` file."""

    answers: Iterable[AnswerDetail]
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
    basis: ReportInputs | None = None,
) -> ExportFile:
    """Export the run's report with a gate result, and with pictures and the next review if the format has room for
    them.

    ``basis`` avoids loading the inputs again.

    :raises UnknownName: for a format that is not in :data:`REPORT_EXPORTS`."""
    chosen_format, basis = REPORT_EXPORTS.check_name(format_name), basis or load_inputs(run)
    plan = planned(basis) if planned and chosen_format in PLANNED else None
    report = dataclasses.replace(build_report(basis), gate=gate.to_dict() if gate else None, next_review=plan)
    if chosen_format in WITH_AGREEMENT:
        report = dataclasses.replace(report, agreement=cached_agreement(run))
    answers: Iterable[AnswerDetail]
    if chosen_format in SHORTENED:
        answers = _with_texts(lowest_scored(report.answers))
    else:
        answers = _answers(basis, report, with_fields=chosen_format in WITH_FIELDS)
    plots = pictures(run) if pictures and chosen_format in PICTURED else ""
    experiment = export_experiment(run) if chosen_format == EXPERIMENT else ""
    return _write_export(run, format_name, report, ExportExtras(answers, gate, plots, experiment))


def export_cached(
    run: Run,
    format_name: str,
    report: Report,
    lines: Sequence[AnswerLine],
    gate: Gate | None = None,
    *,
    plan: Mapping[str, object] | None = None,
    pictures: str = "",
) -> ExportFile:
    """Export an existing report in one of the :data:`BRIEF` formats, with the given answers."""
    planned = plan if format_name in PLANNED else None
    gated_report = dataclasses.replace(report, gate=gate.to_dict() if gate else None, next_review=planned)
    experiment = export_experiment(run) if format_name == EXPERIMENT else ""
    return _write_export(run, format_name, gated_report, ExportExtras(_with_texts(lines), gate, pictures, experiment))


def _write_export(run: Run, format_name: str, report: Report, extras: ExportExtras) -> ExportFile:
    file = REPORT_EXPORTS.write(format_name, f"run-{run.pk}", report, extras)
    return dataclasses.replace(file, chunks=in_language(file.chunks, get_language()))


def in_language(chunks: Iterator[bytes], language: str | None) -> Iterator[bytes]:
    """Activate the language for each chunk, because a response streams after its request's language is reset."""
    while True:
        with override(language):
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def export_to(run: Run, path: Path, gate: Gate | None = None, **options: Any) -> None:
    """Write the run's report to a file whose extension determines the format, completely or not at all.

    ``options`` are keyword arguments of :func:`export`.

    :raises UnknownName: for an unknown extension.
    :raises OSError: if the file cannot be written."""
    write_atomically(path, export(run, REPORT_EXPORTS.format_for_path(path), gate, **options).chunks)


def _with_texts(lines: Sequence[AnswerLine]) -> list[AnswerDetail]:
    """Add texts to answers. One query."""
    texts = _texts([line.answer.answer_id for line in lines])
    return [AnswerDetail(line, texts.get(line.answer.answer_id, "")) for line in lines]


def _texts(answer_ids: Collection[int]) -> dict[int, str]:
    return dict(Answer.objects.filter(pk__in=answer_ids).values_list("pk", "text"))


BATCH_SIZE = 2_000


def _answers(basis: ReportInputs, report: Report, *, with_fields: bool) -> Iterator[AnswerDetail]:
    """Yield answers with texts, and with fields and costs on request, in batches that limit memory."""
    costs = spending_by_answer(basis.run) if with_fields else {}
    fields = answer_fields(basis, BATCH_SIZE) if with_fields else repeat({})
    for start in range(0, len(report.answers), BATCH_SIZE):
        lines = {line.answer.answer_id: line for line in report.answers[start : start + BATCH_SIZE]}
        texts, fields_by_answer = _texts(lines), next(fields)
        for pk, line in lines.items():
            yield AnswerDetail(line, texts.get(pk, ""), fields_by_answer.get(pk), costs.get(pk))


def _json(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    return (piece.encode() for piece in report_json(report, extras.answers))


def _jsonl(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    return (line.encode() for line in json_lines(detail_records(report, extras.answers)))


def _csv(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    return csv_chunks(*answer_table(report, extras.answers, Output.CSV))


def _xlsx(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    answers = answer_table(report, extras.answers, Output.XLSX)
    yield xlsx_bytes({"answers": answers, "figures": (FIGURES, figure_rows(report))})


def _junit(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    yield junit_xml(report, extras.gate)


def _markdown(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    yield markdown_summary(report, extras.gate).encode()


def _html(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    yield html_report(report, list(extras.answers), extras.gate, extras.pictures).encode()


def _experiment(report: Report, extras: ExportExtras) -> Iterator[bytes]:
    yield extras.experiment.encode()


EXPERIMENT, HTML = "experiment", "html"
REPORT_EXPORTS = Exports(
    "a report",
    {
        HTML: _html,
        "xlsx": _xlsx,
        "csv": _csv,
        "md": _markdown,
        "junit": _junit,
        "json": _json,
        "jsonl": _jsonl,
        EXPERIMENT: _experiment,
    },
)
# Formats with the source's fields and the cost of each answer.
WITH_FIELDS = {"json", "jsonl"}
# Formats with intervals of agreement. HTML shows them in plots.
WITH_AGREEMENT = {"json"}
# Formats with plots.
PICTURED = {HTML}
# Formats that limit answers to suit mail and browsers.
SHORTENED = {HTML}
# Formats with the next review.
PLANNED = {"json", HTML, "md"}
# Formats without all answers, built from cached figures.
BRIEF = {HTML, "junit", "md", EXPERIMENT}
