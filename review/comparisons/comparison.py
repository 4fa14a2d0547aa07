"""Comparison of several runs with the first one, their ranking, and the file formats of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from evaluation.core.errors import DomainError
from evaluation.formats.export import Exports, write_atomically
from evaluation.models import Run
from review.comparisons.difference import (
    COMPARED_SCORE,
    MetricDifference,
    QuestionChange,
    RunDifference,
    RunOrder,
    differences_from_first,
    rank_runs,
)
from review.comparisons.values import Side, differing_versions, load_sides
from review.comparisons.verdict import corrected_verdict, family_sentence, judge_only_verdict, p_text, sentences
from review.reports.as_json import summary_json
from review.reports.as_junit import JUnitCase, JUnitSuite, gate_cases, gate_text, junit_document
from review.reports.as_markdown import cells, escape_markdown, gate_block, table
from review.reports.entries import DASH, Output
from review.reports.figure import Figure, plain, withheld_reason
from review.reports.gate import Gate, gate_line
from review.reports.report import Report
from review.reports.sections import OVERALL
from review.statistics.paired_tests.gatekeeping import Multiplicity
from review.statistics.paired_tests.paired import PairedDifference

AnyComparison = TypeVar("AnyComparison", bound="ComparisonSummary")
_NO_GATES: Mapping[int, Gate] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """Comparison of runs by their reports.

    The first run is the baseline: ``differences`` are the others minus the first, overall scores tested before metrics.
    """

    reports: tuple[Report, ...]
    differences: tuple[RunDifference, ...]
    family: Multiplicity
    order: RunOrder | None


@dataclass(frozen=True, slots=True)
class Comparison(ComparisonSummary):
    """A comparison with the inputs of the reports, which gates need."""

    sides: tuple[Side, ...]


def compare(runs: Sequence[Run], *, seed: int = 0) -> Comparison:
    """Compare runs. A single run has no differences."""
    compared_sides = load_sides(runs)
    differences, family = differences_from_first(compared_sides)
    run_order = rank_runs(compared_sides, seed=seed)
    return Comparison(
        tuple(side.report for side in compared_sides), differences, family, run_order, tuple(compared_sides)
    )


def with_margin(comparison: AnyComparison, margin: float | None) -> AnyComparison:
    """Return the comparison for a reader to whom differences up to ``margin`` do not matter.

    :raises DomainError: ``margin_not_positive``."""
    if margin is not None and not margin > 0:
        raise DomainError("margin_not_positive", margin=margin)
    return replace(
        comparison,
        differences=tuple(replace(run_difference, margin=margin) for run_difference in comparison.differences),
    )


def comparison_json(comparison: ComparisonSummary, gates: Mapping[int, Gate] = _NO_GATES) -> dict[str, Any]:
    """Return the comparison as JSON values.

    ``{"score", "runs": [...], "differs": {...}, "differences": [...], "ranking": {...} or null, "gates": {...}}``.
    ``gates`` are keyed by run. ``classes`` and ``spread`` of each run give the tables by system."""
    reports = comparison.reports
    runs = []
    for report in reports:
        summary = summary_json(report)
        sections = {key: summary[key] for key in ("run", "overall", "metrics", "by_category", "latency")}
        profile_tables = {
            key: summary["by_profile"][key] for key in ("classes", "spread") if key in summary["by_profile"]
        }
        runs.append(sections | profile_tables)
    return {
        "score": COMPARED_SCORE,
        "runs": runs,
        "differs": differing_versions(reports),
        "family": _family(comparison.family),
        "differences": [_difference(run_difference) for run_difference in comparison.differences],
        "ranking": None if comparison.order is None else _order(comparison.order),
        "gates": {str(run): plain(gate.to_dict()) for run, gate in gates.items()},
    }


def _family(family: Multiplicity) -> dict[str, Any]:
    """Describe the tests: ``size`` overall scores, each at ``level_of_each``. Metrics need an overall difference."""
    return {"size": family.size, "error": family.error, "level_of_each": plain(family.level)}


def _difference(run_difference: RunDifference) -> dict[str, Any]:
    return {
        "run": run_difference.run_id,
        "baseline": run_difference.baseline_id,
        "differs": dict(run_difference.differs),
        "margin": run_difference.margin,
        "verdict": {
            "judge_only": judge_only_verdict(run_difference).to_dict(),
            "corrected": corrected_verdict(run_difference).to_dict(),
        },
        "overall": _paired(run_difference.overall),
        "p_family": plain(run_difference.p_family),
        "weight": plain(run_difference.weight),
        "parts": list(run_difference.parts),
        "corrected": plain(run_difference.corrected),
        "corrected_this_run": plain(run_difference.corrected_this_run),
        "release": None if run_difference.release is None else run_difference.release.to_dict(),
        "mcnemar": plain(run_difference.passes),
        "metrics": {metric.name: _metric(metric) for metric in run_difference.metrics},
        "worse": [_change(change) for change in run_difference.worse],
        "better": [_change(change) for change in run_difference.better],
    }


def _metric(metric: MetricDifference) -> dict[str, Any]:
    return {
        "scale": str(metric.scale),
        "better": str(metric.direction),
        "difference": _paired(metric.paired),
        "tested": metric.tested,
        "p_family": plain(metric.p_family),
        "mcnemar": plain(metric.passes),
        "corrected": plain(metric.corrected),
        "differs": list(metric.differs),
        **({} if metric.judge_shift is None else {"judge_moved": plain(asdict(metric.judge_shift))}),
        **({} if metric.system_shift is None else {"system_moved": plain(asdict(metric.system_shift))}),
    }


def _paired(paired: PairedDifference | None) -> dict[str, Any] | None:
    return None if paired is None else dict(plain(paired.to_dict()))


def _change(question_change: QuestionChange) -> dict[str, Any]:
    return dict(plain(asdict(question_change) | {"change": question_change.change}))


def _order(run_order: RunOrder) -> dict[str, Any]:
    sensitivity = run_order.sensitivity
    return {
        "profile": run_order.profile,
        "parts": plain(run_order.parts),
        "questions": run_order.ranking.questions,
        "order": [plain({"run": int(row.run), "mean": row.mean, "places": row.places}) for row in run_order.ranked],
        "weights": None
        if sensitivity is None
        else {
            "holds": plain(sensitivity.holds),
            "best": plain(sensitivity.best),
            "turns": [
                plain(asdict(turn) | {"ahead": int(turn.ahead), "behind": int(turn.behind)})
                for turn in sensitivity.turns
            ],
        },
    }


def comparison_markdown(comparison: Comparison, gates: Mapping[int, Gate]) -> str:
    """Render gates, verdicts, scores side by side, differing versions, and the differences by metric."""
    return "\n".join(_markdown_lines(comparison, gates)).rstrip() + "\n"


def _markdown_lines(comparison: Comparison, gates: Mapping[int, Gate]) -> Iterator[str]:
    for run, gate in gates.items():
        yield from gate_block(gate, gate_line(gate, run))
    reports = comparison.reports
    yield f"### {_('Comparison')}"
    yield ""
    for run_difference in comparison.differences:
        yield from (f"- {escape_markdown(sentence)}" for sentence in sentences(run_difference))
    if comparison.differences:
        yield f"- {escape_markdown(family_sentence(comparison.family))}"
    yield ""
    yield from _side_by_side(reports)
    if differing := differing_versions(reports):
        yield "> ⚠️ " + _("Different, so not directly comparable")
        yield ""
        runs = [_run_title(report) for report in reports]
        rows = [[escape_markdown(kind), *map(escape_markdown, values)] for kind, values in differing.items()]
        yield from table((_("item"), *runs), rows)
    for run_difference in comparison.differences:
        yield from _difference_table(run_difference)


def _side_by_side(reports: Sequence[Report]) -> Iterator[str]:
    scores = OVERALL.entries(Output.MARKDOWN)
    yield from table(
        (_("run"), _("system"), _("state"), *(str(score.title) for score in scores)),
        (
            (
                str(report.header.run_id),
                escape_markdown(report.header.system),
                escape_markdown(report.header.state),
                *cells(scores, report),
            )
            for report in reports
        ),
    )


def _difference_table(run_difference: RunDifference) -> Iterator[str]:
    title = _("Run %(run)s minus run %(baseline)s, judge-only scores on the same questions")
    yield "#### " + title % {"run": run_difference.run_id, "baseline": run_difference.baseline_id}
    yield ""
    rows = [
        (
            f"**{_('overall')}**",
            *_paired_cells(run_difference.overall),
            p_text(run_difference.p_family),
            _corrected_cell(run_difference.corrected),
        )
    ]
    rows += [
        (
            escape_markdown(line.name),
            *_paired_cells(line.paired),
            p_text(line.p_family),
            _corrected_cell(line.corrected),
        )
        for line in run_difference.metrics
    ]
    header = (_("figure"), _("difference"), _("interval"), "p", _("adjusted p"), _("corrected difference"))
    yield from table(header, rows)


def _paired_cells(paired: PairedDifference | None) -> tuple[str, str, str]:
    if paired is None:
        return DASH, DASH, DASH
    interval = DASH if paired.low is None or paired.high is None else f"{paired.low:+.3f} – {paired.high:+.3f}"
    return f"{paired.value:+.3f}", interval, p_text(paired.p_value)


def _corrected_cell(figure: Figure) -> str:
    if figure.value is None:
        return escape_markdown(withheld_reason(figure))
    return f"{figure.value:+.3f}" + ("" if figure.low is None else f" ({figure.low:+.3f} – {figure.high:+.3f})")


def _run_title(report: Report) -> str:
    return f"{_('run')} {report.header.run_id}"


def comparison_junit(comparison: Comparison, gates: Mapping[int, Gate]) -> bytes:
    """Render a suite for each run, the baseline first, with its verdicts as output.

    The file has a failure exactly if the gate of a run is not passed, as the exit code says."""
    sentences_by_run = {run_difference.run_id: sentences(run_difference) for run_difference in comparison.differences}
    return junit_document(
        [_suite(side, gates.get(side.run_id), sentences_by_run.get(side.run_id, [])) for side in comparison.sides]
    )


def _suite(side: Side, gate: Gate | None, comparison_lines: list[str]) -> JUnitSuite:
    cases = gate_cases(side.report, gate)
    if gate is None:
        cases = [JUnitCase(case.name, case.kind and "skipped", "", case.message) for case in cases]
    lines = [*([gate_text(gate, side.run_id)] if gate else []), *comparison_lines]
    return JUnitSuite(side.report, f"{'gate' if gate else 'run'}-{side.run_id}", cases, "\n".join(lines))


RunGates = Mapping[int, Gate]


def _json(comparison: Comparison, gates: RunGates) -> Iterator[bytes]:
    yield json.dumps(comparison_json(comparison, gates), ensure_ascii=False, allow_nan=False, indent=2).encode()


def _markdown(comparison: Comparison, gates: RunGates) -> Iterator[bytes]:
    yield comparison_markdown(comparison, gates).encode()


def _junit(comparison: Comparison, gates: RunGates) -> Iterator[bytes]:
    yield comparison_junit(comparison, gates)


COMPARISON_EXPORTS = Exports("a comparison", {"json": _json, "md": _markdown, "junit": _junit})


def export_comparison(comparison: Comparison, gates: RunGates, path: Path) -> None:
    """Write the comparison with its gates atomically.

    :raises UnknownName: for an unknown ending.
    :raises OSError: if the file cannot be written."""
    write_atomically(
        path, COMPARISON_EXPORTS.write(COMPARISON_EXPORTS.format_for_path(path), "comparison", comparison, gates).chunks
    )
