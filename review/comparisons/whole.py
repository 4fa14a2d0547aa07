"""A comparison of several runs: each beside the first, and all in order; as a value and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from evaluation.models import Run
from review.comparisons.choosing import Side, sides
from review.comparisons.difference import SCORE, MetricDifference, QuestionChange, RunDifference, difference
from review.comparisons.order import Order, order
from review.comparisons.verdict import corrected_verdict, judge_only_verdict
from review.comparisons.versions import differing_versions
from review.reports.as_json import summary_json
from review.reports.figure import plain
from review.reports.gate import Gate
from review.statistics.paired_tests.paired import PairedDifference

_NO_GATES: Mapping[int, Gate] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side. The first is the baseline: ``differences`` holds each of the others minus the first."""

    sides: tuple[Side, ...]
    differences: tuple[RunDifference, ...]
    order: Order | None


def compare(runs: Sequence[Run], *, resamples: int = 2000, seed: int = 0) -> Comparison:
    """Compare runs; one alone has nothing to be compared with and stands for itself."""
    chosen = sides(runs)
    differences = tuple(difference(one, chosen[0]) for one in chosen[1:])
    return Comparison(tuple(chosen), differences, order(chosen, resamples=resamples, seed=seed))


def comparison_json(found: Comparison, gates: Mapping[int, Gate] = _NO_GATES) -> dict[str, Any]:
    """``{"score", "runs": [...], "differs": {...}, "differences": [...], "ranking": {...} or null, "gates": {...}}``;
    ``gates`` are those of the runs they were asked of. Every run stands for its system, so that its ``classes`` and
    ``spread`` are those tables of source 001 by system."""
    reports = [side.report for side in found.sides]
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
        "differences": [_difference(one) for one in found.differences],
        "ranking": None if found.order is None else _order(found.order),
        "gates": {str(run): plain(gate.to_dict()) for run, gate in gates.items()},
    }


def _difference(one: RunDifference) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "baseline": one.baseline_id,
        "differs": dict(one.differs),
        "verdict": {
            "judge_only": judge_only_verdict(one).to_dict(),
            "corrected": corrected_verdict(one).to_dict(),
        },
        "overall": _paired(one.overall),
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
        "p_holm": plain(one.p_holm),
        "mcnemar": plain(one.passes),
        "corrected": plain(one.corrected),
        "differs": list(one.differs),
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
        "holds": plain(found.ranking.holds),
        "order": [plain(asdict(one) | {"run": int(one.run)}) for one in found.ranking.order],
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
