"""Cached figures for pages and REST."""

from __future__ import annotations

import dataclasses
import gzip
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import numpy as np
from django.conf import settings
from django.utils.translation import get_language
from pydantic import TypeAdapter

from evaluation.formats.export import FORMATS, ExportFile
from evaluation.models import Answer, MetricDefinition, Run
from review.agreement.answers import AnswerFilter, SelectedAnswer
from review.agreement.run_agreement import Breakdown, compute_agreement
from review.calibration.approvals import run_approvals
from review.comparisons.comparison import ComparisonSummary
from review.comparisons.gates import request_for_runs, run_gate, unapproved_metrics
from review.comparisons.summaries import Headline
from review.evidence.answers import run_answers
from review.evidence.effective import EffectiveValue, ValueSource, effective_values, metric_names
from review.evidence.experts import has_examples
from review.figure_cache.builders import (
    AGREEMENT,
    AGREEMENT_ADAPTER,
    COMPARISON,
    COMPARISON_ADAPTER,
    CORRECTION,
    CORRECTION_ADAPTER,
    FIGURES,
    FIGURES_ADAPTER,
    GATES,
    GATES_ADAPTER,
    HEADLINE,
    HEADLINE_ADAPTER,
    STANDING,
    STANDING_ADAPTER,
    AgreementFigures,
    CorrectionFigures,
    RunFigures,
    build_agreement,
    build_comparison,
    build_correction,
    build_run_figures,
    build_standing,
    builder_of,
    file_kind,
    gated_kind,
)
from review.figure_cache.columns import ANSWERS, NO_SOURCE, SOURCES, Arrays, unpack_columns, values_kind
from review.figure_cache.store import (
    Build,
    Built,
    CacheEntry,
    build_and_store,
    get_or_build,
    is_current,
    is_small,
    kind_in_form,
    require_current,
    subject_of,
)
from review.models import CachedFigures
from review.queues.planning import next_review_json
from review.reports.exports import export
from review.reports.gate import NO_GATE, Gate, GateRequest
from review.reports.lines import AnswerLine
from review.reports.report import Report
from review.standing.selectors import StandingHistory, release_runs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[T]):
    """A cached value, ``None`` until it is built once. ``stale``: a rebuild is requested."""

    value: T | None
    built_at: datetime | None
    stale: bool


def _cached_value(entry: CacheEntry, form: TypeAdapter[T]) -> CachedValue[T]:
    value = None if entry.content is None else form.validate_json(entry.content)
    return CachedValue(value, entry.built_at, entry.stale)


def _read_cached(kind: str, build: Build, runs: Sequence[Run], form: TypeAdapter[T]) -> CachedValue[T]:
    (entry,) = get_or_build(kind, build, [runs])
    return _cached_value(entry, form)


def run_figures(run: Run) -> CachedValue[RunFigures]:
    """Report of a run without answers, and the next review. State and approvals are current."""
    cached_figures = _read_cached(FIGURES, build_run_figures, [run], FIGURES_ADAPTER)
    if cached_figures.value is None:
        return cached_figures
    return dataclasses.replace(
        cached_figures,
        value=dataclasses.replace(cached_figures.value, report=_with_current_state(cached_figures.value.report, run)),
    )


def _read_current(kind: str, build: Build, runs: Sequence[Run], form: TypeAdapter[T]) -> Built[T]:
    built = require_current(kind, build, runs)
    return Built(form.validate_json(built.value), built.built_at)


def current_figures(run: Run) -> Built[RunFigures]:
    """Current report of a run without answers, and the next review.

    :raises Later: ``figures_in_making``, as do the functions below."""
    built = _read_current(FIGURES, build_run_figures, [run], FIGURES_ADAPTER)
    return Built(dataclasses.replace(built.value, report=_with_current_state(built.value.report, run)), built.built_at)


def _with_current_state(report: Report, run: Run) -> Report:
    complete = run.state == Run.State.COMPLETED
    header = dataclasses.replace(report.header, state=run.state, reason=run.reason, complete=complete)
    judged = any(judge.primary and not judge.baseline for judge in report.provenance.judges)
    return dataclasses.replace(report, header=header, approvals=run_approvals(run) if judged else ())


def headlines_of(runs: Sequence[Run]) -> dict[int, Headline]:
    """Headlines of ended runs by primary key, as far as they are built. Four queries."""
    ended = [run for run in runs if run.state in Run.ENDED]
    entries = (
        get_or_build(HEADLINE, build_run_figures, [[run] for run in ended], requested_kind=FIGURES) if ended else []
    )
    headlines = {
        run.pk: _cached_value(entry, HEADLINE_ADAPTER).value for run, entry in zip(ended, entries, strict=True)
    }
    return {pk: value for pk, value in headlines.items() if value is not None}


def agreement_figures(run: Run) -> CachedValue[AgreementFigures]:
    return _read_cached(AGREEMENT, build_agreement, [run], AGREEMENT_ADAPTER)


def agreement_without_waiting(run: Run) -> tuple[CachedValue[AgreementFigures], bool]:
    """Agreement of a run, and whether its intervals are still missing. Small runs are shown without them first."""
    if is_small([run]) and not is_current(AGREEMENT, [run]):
        figures = AgreementFigures(
            compute_agreement(run, by=Breakdown.CATEGORY).to_dict(), has_examples(run.answer_set_id)
        )
        return CachedValue(figures, None, stale=False), True
    return agreement_figures(run), False


def current_agreement(run: Run) -> Built[AgreementFigures]:
    return _read_current(AGREEMENT, build_agreement, [run], AGREEMENT_ADAPTER)


def cached_comparison(runs: Sequence[Run]) -> CachedValue[ComparisonSummary]:
    return _read_cached(COMPARISON, build_comparison, runs, COMPARISON_ADAPTER)


def current_comparison(runs: Sequence[Run]) -> Built[ComparisonSummary]:
    return _read_current(COMPARISON, build_comparison, runs, COMPARISON_ADAPTER)


def standing_figures(run: Run) -> CachedValue[StandingHistory]:
    """Standing scores of the releases of the run's system."""
    if not (runs := release_runs(run)):
        return CachedValue(StandingHistory(()), None, stale=False)
    return _read_cached(STANDING, build_standing, runs, STANDING_ADAPTER)


def current_standing(run: Run) -> Built[StandingHistory]:
    if not (runs := release_runs(run)):
        return Built(StandingHistory(()), None)
    return _read_current(STANDING, build_standing, runs, STANDING_ADAPTER)


def current_correction(run: Run) -> Built[CorrectionFigures]:
    return _read_current(CORRECTION, build_correction, [run], CORRECTION_ADAPTER)


def current_gates(runs: Sequence[Run], gate_request: GateRequest) -> dict[int, Gate]:
    """Current gates of runs against the first, or of one run. Empty without a gate. Approvals are current.

    :raises DomainError: as :func:`~review.comparisons.gates.asked_of` does."""
    if not request_for_runs(runs, gate_request).is_set:
        return {}
    kind = gated_kind(GATES, gate_request)
    gates = _read_current(kind, builder_of(kind), runs, GATES_ADAPTER).value
    if not gate_request.require_approval:
        return gates
    reports = {run.pk: current_figures(run).value.report for run in runs if run.pk in gates}
    return {pk: dataclasses.replace(gate, unapproved=unapproved_metrics(reports[pk])) for pk, gate in gates.items()}


def report_file(run: Run, format_name: str, gate_request: GateRequest = NO_GATE) -> ExportFile:
    """Report file with all answers, written at once for small runs and by a worker for others.

    :raises Later: ``figures_in_making``."""
    if is_small(runs := gate_request.runs(run)):
        return export(run, format_name, run_gate(run, gate_request), planned=next_review_json)
    kind_name, file_format = file_kind(format_name, get_language() or settings.LANGUAGE_CODE), FORMATS[format_name]
    kind = gated_kind(kind_name, gate_request)
    built = require_current(kind, builder_of(kind), runs)
    return ExportFile(
        f"run-{run.pk}.{file_format.extension}", file_format.media_type, _decompressed(built.value), built.built_at
    )


def _decompressed(content: bytes) -> Iterator[bytes]:
    with gzip.open(io.BytesIO(content)) as file:
        while piece := file.read(2**16):
            yield piece


@dataclass(frozen=True, slots=True)
class AnswerListing:
    """A page of a run's matching answers: ``count`` in total, ``rows`` with current values.

    ``metric`` is the chosen one, else the first."""

    metric: MetricDefinition | None
    metrics: tuple[MetricDefinition, ...]
    categories: tuple[str, ...]
    count: int
    rows: tuple[SelectedAnswer, ...]


def listed_answers(run: Run, answer_filter: AnswerFilter, start: int, size: int) -> CachedValue[AnswerListing]:
    """Return ``size`` matching answers from ``start``, filtered by cached columns. A fixed number of queries."""
    (entry,) = get_or_build(ANSWERS, build_run_figures, [[run]], requested_kind=FIGURES)
    if entry.content is None:
        return CachedValue(None, None, stale=True)
    columns = unpack_columns(entry.content)
    metrics_by_id = MetricDefinition.objects.in_bulk(columns["metrics"].tolist())
    metrics = tuple(metrics_by_id[pk] for pk in columns["metrics"].tolist())
    metric = next(
        (candidate for candidate in metrics if candidate.name == answer_filter.metric), metrics[0] if metrics else None
    )
    categories = tuple(name for name in columns["categories"].tolist() if name)
    values = _metric_columns(run, metric)
    positions = np.flatnonzero(_matching_mask(run, answer_filter, columns, values))
    sign = -1 if answer_filter.order.startswith("-") else 1
    if answer_filter.order.endswith("category"):
        ranks = np.argsort(np.argsort(columns["categories"], kind="stable"))
        positions = positions[np.argsort(sign * ranks[columns["category"]][positions], kind="stable")]
    elif answer_filter.order and values is not None:
        # Answers without a value come last in both directions.
        positions = positions[np.argsort(sign * values["value"][positions], kind="stable")]
    matching = columns["answer"][positions]
    rows = _read_selected(run, metric, matching[start : start + size].tolist())
    return CachedValue(AnswerListing(metric, metrics, categories, len(matching), rows), entry.built_at, entry.stale)


def _metric_columns(run: Run, metric: MetricDefinition | None) -> Arrays | None:
    if metric is None:
        return None
    kind = values_kind(metric.pk)
    # The row is missing if the database is read-only.
    row = CachedFigures.objects.filter(kind=kind_in_form(kind, [run]), subject=subject_of([run])).first()
    return unpack_columns(bytes(row.content) if row else build_and_store(build_run_figures, [run])[kind])


def _matching_mask(
    run: Run, answer_filter: AnswerFilter, columns: Arrays, values: Arrays | None
) -> np.ndarray[Any, Any]:
    """Boolean mask of the matching answers."""
    mask = np.ones(len(columns["answer"]), dtype=bool)
    if answer_filter.category:
        mask &= columns["categories"][columns["category"]] == answer_filter.category
    if answer_filter.words:
        question_matches = Answer.objects.filter(
            answer_set=run.answer_set_id, question__text__icontains=answer_filter.words
        )
        mask &= np.isin(columns["answer"], np.fromiter(question_matches.values_list("pk", flat=True), dtype=np.int64))
    if values is None:
        return (
            mask
            if not (answer_filter.label or answer_filter.low is not None or answer_filter.high is not None)
            else mask & False
        )
    if answer_filter.source:
        source = values["source"]
        from_source = source == SOURCES.index(ValueSource(answer_filter.source))
        mask &= from_source | (source == NO_SOURCE) if answer_filter.source == ValueSource.NONE else from_source
    if answer_filter.label:
        mask &= (values["label"] >= 0) & np.append(values["labels"] == answer_filter.label, False)[values["label"]]
    if answer_filter.low is not None:
        mask &= values["value"] >= answer_filter.low
    if answer_filter.high is not None:
        mask &= values["value"] <= answer_filter.high
    return mask


def listed_lines(run: Run) -> tuple[AnswerLine, ...]:
    """Answers of a short report with current values. Empty until the run's figures are built once."""
    (entry,) = get_or_build(ANSWERS, build_run_figures, [[run]], requested_kind=FIGURES)
    if entry.content is None:
        return ()
    columns = unpack_columns(entry.content)
    ids = columns["listed"].tolist()
    scores = dict(zip(ids, (None if math.isnan(score) else score for score in columns["score"].tolist()), strict=True))
    run_values = effective_values(run, ids)
    names = metric_names(run_values.metrics)
    values: dict[int, dict[str, EffectiveValue]] = {pk: {} for pk in ids}
    for metric_id, by_answer in run_values.values.items():
        for answer_id, effective in by_answer.items():
            values[answer_id][names[metric_id]] = effective
    answers = {answer.answer_id: answer for answer in run_answers(run, ids)}
    return tuple(AnswerLine(answers[pk], values[pk], scores[pk]) for pk in ids if pk in answers)


def _read_selected(run: Run, metric: MetricDefinition | None, ids: Sequence[int]) -> tuple[SelectedAnswer, ...]:
    """Answers in this order, with current effective values."""
    answers = {answer.answer_id: answer for answer in run_answers(run, ids)} if ids else {}
    values = effective_values(run, ids).values.get(metric.pk, {}) if ids and metric else {}
    return tuple(SelectedAnswer(answers[pk], values.get(pk)) for pk in ids if pk in answers)
