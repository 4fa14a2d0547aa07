"""A comparison of several runs: each beside the first, and all in order; as a value and in its file formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from evaluation.core.errors import Refused
from evaluation.formats.export import Exports, write_whole
from evaluation.models import Run
from review.comparisons.difference import (
    SCORE,
    MetricDifference,
    Order,
    QuestionChange,
    RunDifference,
    differences_from_first,
    order,
)
from review.comparisons.values import Side, differing_versions, sides
from review.comparisons.verdict import corrected_verdict, family_sentence, judge_only_verdict, p_text, sentences
from review.reports.as_json import summary_json
from review.reports.as_junit import Case, Suite, gate_cases, gate_text, junit_document
from review.reports.as_markdown import cells, escaped, gate_block, table
from review.reports.entries import NOTHING, Output
from review.reports.figure import Figure, plain, why_withheld
from review.reports.gate import Gate, gate_line
from review.reports.report import Report
from review.reports.sections import OVERALL
from review.statistics.paired_tests.gatekeeping import Multiplicity
from review.statistics.paired_tests.paired import PairedDifference

AnyCompared = TypeVar("AnyCompared", bound="Compared")
_NO_GATES: Mapping[int, Gate] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs side by side, by their reports. The first is the baseline: ``differences`` holds each of the others minus
    the first, overall scores tested before their metrics."""

    reports: tuple[Report, ...]
    differences: tuple[RunDifference, ...]
    family: Multiplicity
    order: Order | None


@dataclass(frozen=True, slots=True)
class Comparison(Compared):
    """The same with what the reports are made of, which gates need."""

    sides: tuple[Side, ...]


def compare(runs: Sequence[Run], *, seed: int = 0) -> Comparison:
    """Compare runs; one alone has nothing to be compared with and stands for itself."""
    chosen = sides(runs)
    differences, family = differences_from_first(chosen)
    ranked = order(chosen, seed=seed)
    return Comparison(tuple(side.report for side in chosen), differences, family, ranked, tuple(chosen))


def with_margin(found: AnyCompared, margin: float | None) -> AnyCompared:
    """The comparison of a reader to whom a difference of at most ``margin`` does not matter.

    :raises Refused: ``margin_not_positive``.
    """
    if margin is not None and not margin > 0:
        raise Refused("margin_not_positive", margin=margin)
    return replace(found, differences=tuple(replace(one, margin=margin) for one in found.differences))


def comparison_json(found: Compared, gates: Mapping[int, Gate] = _NO_GATES) -> dict[str, Any]:
    """``{"score", "runs": [...], "differs": {...}, "differences": [...], "ranking": {...} or null, "gates": {...}}``;
    ``gates`` are those of the runs they were asked of. Every run stands for its system, so that its ``classes`` and
    ``spread`` are those tables of source 001 by system."""
    reports = found.reports
    runs = []
    for report in reports:
        summary = summary_json(report)
        shown = {key: summary[key] for key in ("run", "overall", "metrics", "by_category", "latency")}
        beside = {key: summary["by_profile"][key] for key in ("classes", "spread") if key in summary["by_profile"]}
        runs.append(shown | beside)
    return {
        "score": SCORE,
        "runs": runs,
        "differs": differing_versions(reports),
        "family": _family(found.family),
        "differences": [_difference(one) for one in found.differences],
        "ranking": None if found.order is None else _order(found.order),
        "gates": {str(run): plain(gate.to_dict()) for run, gate in gates.items()},
    }


def _family(one: Multiplicity) -> dict[str, Any]:
    """``size`` overall scores, each tested at ``level_of_each``; metrics only where their overall score differs."""
    return {"size": one.size, "error": one.error, "level_of_each": plain(one.level)}


def _difference(one: RunDifference) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "baseline": one.baseline_id,
        "differs": dict(one.differs),
        "margin": one.margin,
        "verdict": {
            "judge_only": judge_only_verdict(one).to_dict(),
            "corrected": corrected_verdict(one).to_dict(),
        },
        "overall": _paired(one.overall),
        "p_family": plain(one.p_family),
        "weight": plain(one.weight),
        "parts": list(one.parts),
        "corrected": plain(one.corrected),
        "corrected_this_run": plain(one.corrected_this_run),
        "mcnemar": plain(one.passes),
        "metrics": {metric.name: _metric(metric) for metric in one.metrics},
        "worse": [_change(change) for change in one.worse],
        "better": [_change(change) for change in one.better],
    }


def _metric(one: MetricDifference) -> dict[str, Any]:
    return {
        "scale": str(one.scale),
        "better": "lower" if one.lower_is_better else "higher",
        "difference": _paired(one.paired),
        "tested": one.tested,
        "p_family": plain(one.p_family),
        "mcnemar": plain(one.passes),
        "corrected": plain(one.corrected),
        "differs": list(one.differs),
        **({} if one.judge_moved is None else {"judge_moved": plain(asdict(one.judge_moved))}),
        **({} if one.system_moved is None else {"system_moved": plain(asdict(one.system_moved))}),
    }


def _paired(one: PairedDifference | None) -> dict[str, Any] | None:
    return None if one is None else dict(plain(one.to_dict()))


def _change(one: QuestionChange) -> dict[str, Any]:
    return dict(plain(asdict(one) | {"change": one.change}))


def _order(found: Order) -> dict[str, Any]:
    sensitivity = found.sensitivity
    return {
        "profile": found.profile,
        "parts": plain(found.parts),
        "questions": found.ranking.questions,
        "order": [plain({"run": int(row.run), "mean": row.mean, "places": row.places}) for row in found.ranked],
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


def comparison_markdown(found: Comparison, gates: Mapping[int, Gate]) -> str:
    """The gates first, then what is said of each run against the first, scores side by side, what differs between the
    runs, and the differences metric by metric."""
    return "\n".join(_markdown_lines(found, gates)).rstrip() + "\n"


def _markdown_lines(found: Comparison, gates: Mapping[int, Gate]) -> Iterator[str]:
    for run, gate in gates.items():
        yield from gate_block(gate, gate_line(gate, run))
    reports = found.reports
    yield f"### {_('Comparison')}"
    yield ""
    for one in found.differences:
        yield from (f"- {escaped(sentence)}" for sentence in sentences(one))
    if found.differences:
        yield f"- {escaped(family_sentence(found.family))}"
    yield ""
    yield from _side_by_side(reports)
    if differing := differing_versions(reports):
        yield "> ⚠️ " + _("Not the same, so not comparable as it stands")
        yield ""
        runs = [_named(report) for report in reports]
        rows = [[escaped(kind), *map(escaped, values)] for kind, values in differing.items()]
        yield from table((_("what"), *runs), rows)
    for one in found.differences:
        yield from _difference_table(one)


def _side_by_side(reports: Sequence[Report]) -> Iterator[str]:
    scores = OVERALL.entries(Output.MARKDOWN)
    yield from table(
        (_("run"), _("system"), _("state"), *(str(one.title) for one in scores)),
        (
            (str(one.header.run_id), escaped(one.header.system), escaped(one.header.state), *cells(scores, one))
            for one in reports
        ),
    )


def _difference_table(one: RunDifference) -> Iterator[str]:
    title = _("Run %(run)s minus run %(baseline)s, judge-only scores of the same questions")
    yield "#### " + title % {"run": one.run_id, "baseline": one.baseline_id}
    yield ""
    rows = [(f"**{_('overall')}**", *_paired_cells(one.overall), p_text(one.p_family), _corrected_cell(one.corrected))]
    rows += [
        (escaped(line.name), *_paired_cells(line.paired), p_text(line.p_family), _corrected_cell(line.corrected))
        for line in one.metrics
    ]
    header = (_("figure"), _("difference"), _("interval"), "p", _("p, over all"), _("corrected difference"))
    yield from table(header, rows)


def _paired_cells(one: PairedDifference | None) -> tuple[str, str, str]:
    if one is None:
        return NOTHING, NOTHING, NOTHING
    interval = NOTHING if one.low is None or one.high is None else f"{one.low:+.3f} – {one.high:+.3f}"
    return f"{one.value:+.3f}", interval, p_text(one.p_value)


def _corrected_cell(figure: Figure) -> str:
    if figure.value is None:
        return escaped(why_withheld(figure))
    return f"{figure.value:+.3f}" + ("" if figure.low is None else f" ({figure.low:+.3f} – {figure.high:+.3f})")


def _named(report: Report) -> str:
    return f"{_('run')} {report.header.run_id}"


def comparison_junit(found: Comparison, gates: Mapping[int, Gate]) -> bytes:
    """A suite for each run in order, the baseline first; what sets a run apart from the baseline is what its suite
    prints. Something fails in the file exactly where the gate of a run is not passed, as the exit code says."""
    said = {one.run_id: sentences(one) for one in found.differences}
    return junit_document([_suite(side, gates.get(side.run_id), said.get(side.run_id, [])) for side in found.sides])


def _suite(side: Side, gate: Gate | None, said: list[str]) -> Suite:
    cases = gate_cases(side.report, gate)
    if gate is None:
        cases = [Case(one.name, one.kind and "skipped", "", one.message) for one in cases]
    lines = [*([gate_text(gate, side.run_id)] if gate else []), *said]
    return Suite(side.report, f"{'gate' if gate else 'run'}-{side.run_id}", cases, "\n".join(lines))


Gates = Mapping[int, Gate]


def _json(found: Comparison, gates: Gates) -> Iterator[bytes]:
    yield json.dumps(comparison_json(found, gates), ensure_ascii=False, allow_nan=False, indent=2).encode()


def _markdown(found: Comparison, gates: Gates) -> Iterator[bytes]:
    yield comparison_markdown(found, gates).encode()


def _junit(found: Comparison, gates: Gates) -> Iterator[bytes]:
    yield comparison_junit(found, gates)


COMPARISON_EXPORTS = Exports("a comparison", {"json": _json, "md": _markdown, "junit": _junit})


def export_comparison(found: Comparison, gates: Gates, path: Path) -> None:
    """Write the comparison with the gates of its runs; the file appears whole or not at all.

    :raises UnknownName: for an unknown ending.
    :raises OSError: where the file cannot be written.
    """
    write_whole(path, COMPARISON_EXPORTS.write(COMPARISON_EXPORTS.format_of(path), "comparison", found, gates).chunks)
