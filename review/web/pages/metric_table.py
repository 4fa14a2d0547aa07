"""The metrics of a run as a table: means three ways, and how many answers they rest on."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language

from evaluation.wording import numbers
from review.reports.report import Coverage, MetricLine
from review.web.pages.figures import Cell, cell


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric. ``shares`` are of class metrics (label and percentage), ``p95`` of latencies; ``rated`` counts
    answers with a person's value. ``plot`` is the reviewed mean on the profile's unit scale as a percentage."""

    title: str
    scale: str
    weight: str
    kind: str
    judge_only: Cell
    reviewed: Cell
    corrected: Cell
    coverage: Coverage
    rated: int
    overridden: int
    shares: tuple[tuple[str, str], ...]
    p95: str


def metric_rows(lines: tuple[MetricLine, ...]) -> tuple[MetricRow, ...]:
    """The weighted metrics of the profile first, then the reported ones."""
    language = get_language() or "en"
    return tuple(_row(line, language) for line in sorted(lines, key=lambda line: -line.weight))


def _row(line: MetricLine, language: str) -> MetricRow:
    return MetricRow(
        title=line.title.in_language(language),
        scale=numbers.scale_name(line.scale),
        weight=numbers.plain(line.weight) if line.weight else "",
        kind=line.kind,
        judge_only=cell(line.judge_only, line.scale),
        reviewed=cell(line.reviewed, line.scale),
        corrected=cell(line.corrected, line.scale),
        coverage=line.coverage,
        rated=line.rated,
        overridden=line.overridden,
        shares=tuple((label, numbers.share(share)) for label, share in line.shares.items()),
        p95=numbers.seconds(line.latency.p95) if line.latency else "",
    )
