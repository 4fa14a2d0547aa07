"""Builders of cached figures: all figures of a run, its agreement, corrections, comparisons, gates and report files."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import override
from pydantic import TypeAdapter

from evaluation.models import Run
from review.agreement.run_agreement import Breakdown, cached_agreement
from review.comparisons.comparison import ComparisonSummary, compare
from review.comparisons.gates import run_gates
from review.comparisons.summaries import Headline, headline
from review.comparisons.values import load_sides
from review.evidence.experts import has_examples
from review.evidence.seals import LabelForm, fixed_label_form
from review.figure_cache.columns import build_columns, unpack_columns
from review.figure_cache.store import (
    FULL,
    Build,
    build_and_store,
    count_invalidations,
    request_rebuild,
    stamp_of,
    stamps_of,
    subject_of,
)
from review.models import CachedFigures
from review.queues.planning import ReviewPlan, next_review, next_review_json
from review.releases.changes import PreviousRelease, find_previous_release
from review.reports.estimates import correction_sheet
from review.reports.exports import BRIEF, REPORT_EXPORTS, export
from review.reports.gate import NO_GATE, Gate, GateRequest
from review.reports.inputs import load_inputs
from review.reports.report import Report, build_report
from review.standing.selectors import StandingHistory, standing_history


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Report of a run without answers, the next worthwhile review, and the previous release."""

    report: Report
    plan: ReviewPlan | None
    previous: PreviousRelease | None = None


@dataclass(frozen=True, slots=True)
class AgreementFigures:
    """Agreement by category with intervals, as the ``agreement`` command prints it. ``examples``: some ratings are demo
    data."""

    figures: Mapping[str, Any]
    examples: bool


@dataclass(frozen=True, slots=True)
class CorrectionFigures:
    """Estimates by category, as the ``corrected_scores`` command prints them, and the next worthwhile review."""

    figures: Mapping[str, Any]
    plan: ReviewPlan | None


FIGURES, HEADLINE, AGREEMENT, COMPARISON = "figures", "headline", "agreement", "comparison"
CORRECTION, GATES, STANDING = "correction", "gates", "standing"
WITH_GATE = Q(kind__contains=" {")
FIGURES_ADAPTER, HEADLINE_ADAPTER = TypeAdapter(RunFigures), TypeAdapter(Headline)
CORRECTION_ADAPTER, GATES_ADAPTER = TypeAdapter(CorrectionFigures), TypeAdapter(dict[int, Gate])
STANDING_ADAPTER = TypeAdapter(StandingHistory)
AGREEMENT_ADAPTER, COMPARISON_ADAPTER = TypeAdapter(AgreementFigures), TypeAdapter(ComparisonSummary)


def _dump_json(kind: TypeAdapter[Any], value: object) -> bytes:
    # Mappings of any type become JSON objects.
    return kind.dump_json(value, fallback=dict, warnings=False)


def build_run_figures(runs: Sequence[Run]) -> dict[str, bytes]:
    """Build all cached entries of a run from one load of its evidence."""
    (run,) = runs
    basis = load_inputs(run)
    report = build_report(basis)
    figures = RunFigures(dataclasses.replace(report, answers=()), next_review(basis), find_previous_release(basis.run))
    return {
        FIGURES: _dump_json(FIGURES_ADAPTER, figures),
        HEADLINE: _dump_json(HEADLINE_ADAPTER, headline(report)),
        **build_columns(basis, report.answers),
    }


def build_agreement(runs: Sequence[Run]) -> dict[str, bytes]:
    (run,) = runs
    figures = AgreementFigures(cached_agreement(run, by=Breakdown.CATEGORY), has_examples(run.answer_set_id))
    return {AGREEMENT: _dump_json(AGREEMENT_ADAPTER, figures)}


def build_correction(runs: Sequence[Run]) -> dict[str, bytes]:
    """Build the judge-only, reviewed and corrected estimates of a run, its metrics and categories."""
    (run,) = runs
    basis = load_inputs(run)
    figures = CorrectionFigures(correction_sheet(basis, by_category=True).to_dict(), next_review(basis))
    return {CORRECTION: _dump_json(CORRECTION_ADAPTER, figures)}


def build_comparison(runs: Sequence[Run]) -> dict[str, bytes]:
    """Build the comparison of runs with the first, without the data for intervals at other levels."""
    comparison = compare(runs)
    without_intervals = ComparisonSummary(
        tuple(dataclasses.replace(report, answers=()) for report in comparison.reports),
        tuple(difference.without_intervals() for difference in comparison.differences),
        comparison.family,
        comparison.order,
    )
    return {COMPARISON: _dump_json(COMPARISON_ADAPTER, without_intervals)}


def build_standing(runs: Sequence[Run]) -> dict[str, bytes]:
    """Build the standing scores of the releases of a system, oldest first."""
    return {STANDING: _dump_json(STANDING_ADAPTER, standing_history(runs))}


def build_file(
    format_name: str, language: str, runs: Sequence[Run], gate_request: GateRequest = NO_GATE
) -> dict[str, bytes]:
    """Build a compressed report of the last run with all answers. A gate's baseline is the run before it."""
    run, buffer = runs[-1], io.BytesIO()
    gate = run_gates(load_sides(runs), gate_request)[run.pk] if gate_request.is_set else None
    with override(language), gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.writelines(export(run, format_name, gate, planned=next_review_json).chunks)
    return {gated_kind(file_kind(format_name, language), gate_request): buffer.getvalue()}


def build_gates(runs: Sequence[Run], gate_request: GateRequest) -> dict[str, bytes]:
    """Build the gates of runs against the first, with intervals at the requested level."""
    return {gated_kind(GATES, gate_request): _dump_json(GATES_ADAPTER, run_gates(load_sides(runs), gate_request))}


def file_kind(format_name: str, language: str) -> str:
    """Cache kind of a report file, such as ``report csv ko``."""
    return f"report {format_name} {language}"


def gated_kind(kind: str, gate_request: GateRequest) -> str:
    """Cache kind with the gate's non-default settings, such as ``gates {"fail_under": 0.7}``.

    Returns ``kind`` itself without a gate. The baseline is one of the runs."""
    if not gate_request.is_set:
        return kind
    return f"{kind} {json.dumps(gate_request.model_dump(exclude_defaults=True, exclude={'baseline'}))}"


FILE_BUILDERS: Mapping[str, Build] = {
    file_kind(format_name, language): partial(build_file, format_name, language)
    for format_name in REPORT_EXPORTS.names
    if format_name not in BRIEF
    for language, _ in settings.LANGUAGES
}
GATED_BUILDERS: Mapping[str, Callable[..., Mapping[str, bytes]]] = {GATES: build_gates, **FILE_BUILDERS}
BUILDERS: Mapping[str, Build] = {
    **FILE_BUILDERS,
    FIGURES: build_run_figures,
    AGREEMENT: build_agreement,
    CORRECTION: build_correction,
    COMPARISON: build_comparison,
    STANDING: build_standing,
}


def builder_of(kind: str) -> Build:
    """Builder of a cache kind, with the gate encoded in it."""
    name, brace, settings_json = kind.partition(" {")
    return (
        partial(GATED_BUILDERS[name], gate_request=GateRequest(**json.loads("{" + settings_json)))
        if brace
        else BUILDERS[kind]
    )


def rebuild(pk: int) -> None:
    """Background task: rebuild a stale entry. Deletes entries of deleted runs."""
    row = CachedFigures.objects.filter(pk=pk).first()
    if row is None:
        return
    keys = [int(key) for key in row.subject.split(",")]
    runs = Run.objects.in_bulk(keys)
    if len(runs) < len(set(keys)):
        row.delete()
        return
    form = LabelForm.FULL if row.kind.startswith(FULL) else LabelForm.OPEN
    with fixed_label_form(form):
        build_and_store(builder_of(row.kind.removeprefix(FULL)), [runs[key] for key in keys])


# Recently ended runs whose figures are built in advance.
PREBUILT_RUNS = 20
MAX_UNUSED_AGE = timedelta(days=30)


def maintain_cache() -> None:
    """Periodic task: count invalidations, request figures of recently ended runs, and delete unused entries."""
    count_invalidations()
    ended = list(Run.objects.filter(state__in=Run.ENDED).order_by("-pk")[:PREBUILT_RUNS])
    rows = CachedFigures.objects.filter(
        kind=FIGURES, subject__in=[subject_of([run]) for run in ended], built_at__isnull=False
    )
    built_subjects = set(rows.values_list("subject", flat=True))
    for run in ended:
        if subject_of([run]) not in built_subjects:
            request_rebuild(FIGURES, [run])
    unused_entries = Q(kind__in=[COMPARISON, STANDING, *FILE_BUILDERS]) | Q(kind__startswith=FULL) | WITH_GATE
    CachedFigures.objects.filter(unused_entries, built_at__lt=timezone.now() - MAX_UNUSED_AGE).delete()


def _buildable() -> Q:
    return Q(kind__in=[*BUILDERS, *(FULL + kind for kind in BUILDERS)]) | WITH_GATE


def build_requested() -> None:
    """Build all requested entries in this process."""
    waiting = CachedFigures.objects.filter(Q(rebuild_requested_at__isnull=False) | Q(built_at=None), _buildable())
    for pk in waiting.values_list("pk", flat=True):
        rebuild(pk)


def differing_kinds(run: Run) -> list[str]:
    """Kinds of current cached entries that differ from freshly built ones. Empty unless the cache is inconsistent."""
    count_invalidations()
    stamp = stamp_of([run], stamps_of([run]))
    rows = CachedFigures.objects.filter(subject=subject_of([run]), stamp=stamp) if stamp else ()
    cached_contents = {row.kind: bytes(row.content) for row in rows}
    kinds = []
    for kind in (FIGURES, AGREEMENT, CORRECTION):
        if kind in cached_contents:
            rebuilt_contents = BUILDERS[kind]([run])
            kinds += [
                name
                for name, content in rebuilt_contents.items()
                if name in cached_contents and not _same(name, cached_contents[name], content)
            ]
    return kinds


def _same(kind: str, cached_content: bytes, rebuilt_content: bytes) -> bool:
    if kind in {FIGURES, HEADLINE, AGREEMENT, CORRECTION}:
        return bool(json.loads(cached_content) == json.loads(rebuilt_content))
    cached_columns, rebuilt_columns = unpack_columns(cached_content), unpack_columns(rebuilt_content)
    return cached_columns.keys() == rebuilt_columns.keys() and all(
        cached_columns[name].tobytes() == rebuilt_columns[name].tobytes() for name in cached_columns
    )
