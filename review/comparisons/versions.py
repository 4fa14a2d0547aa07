"""The versions in which runs differ: figures of runs that differ here are not comparable as they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evaluation.core.registry import JUDGED
from review.comparisons.choosing import Side
from review.reports.provenance import JudgeUsed
from review.reports.report import Report

Differing = Mapping[str, list[str]]
SERVED = "served_model"


def differing_versions(reports: Sequence[Report]) -> dict[str, list[str]]:
    """What the runs do not have in common, by kind: question set, profile, judge, the model that answered under a
    judge's name, rubric, how a judge's value comes about, k, kind of evaluation, metrics with their versions; one text
    for each run."""
    kinds = {
        "question_set": [r.header.question_set for r in reports],
        "profile": [r.header.profile for r in reports],
        "judge": [_primary(r, _judge) for r in reports],
        "rubric": [_primary(r, _rubric) for r in reports],
        "method": [_primary(r, lambda one: one.method) for r in reports],
        "k": [str(r.provenance.k) for r in reports],
        "evaluation_type": [r.provenance.evaluation_type for r in reports],
        "metrics": [", ".join(f"{one.name} v{one.version}" for one in r.provenance.metrics) for r in reports],
    }
    found = {kind: values for kind, values in kinds.items() if len(set(values)) > 1}
    return found | ({SERVED: [_served(r) for r in reports]} if _several_served(reports) else {})


def metric_differs(ours: Side, baseline: Side, name: str, differing: Differing) -> tuple[str, ...]:
    """In what a metric of this name is not the same thing in two runs: its version, or who judged it by what."""
    one, other = (next((line for line in side.report.metrics if line.name == name), None) for side in (ours, baseline))
    found = ["metrics"] if one and other and one.metric_id != other.metric_id else []
    if one and one.kind in JUDGED:
        found += [kind for kind in ("judge", "rubric", "method", SERVED) if kind in differing]
    return tuple(found)


def _judge(one: JudgeUsed) -> str:
    return f"{one.judge.name}@{one.judge.version}"


def _rubric(one: JudgeUsed) -> str:
    return f"{one.rubric.name} v{one.rubric.version} ({one.language})"


def _several_served(reports: Sequence[Report]) -> bool:
    """Whether replies of several models stand behind one judge's values, in one run or over all: then they are not of
    one series. Judges whose servers name no model cannot be told."""
    models: dict[str, set[str]] = {}
    for report in reports:
        for one in _asked(report):
            models.setdefault(_judge(one), set()).update(served.model for served in one.served)
    return any(len(names) > 1 for names in models.values())


def _asked(report: Report) -> list[JudgeUsed]:
    """The judges behind the run's values: the primary ones, or those beside it where it is a jury."""
    judges = report.provenance.judges
    primary = [one for one in judges if one.primary]
    return primary if any(one.served for one in primary) else list(judges)


def _served(report: Report) -> str:
    """Every model with its replies; several rubrics of a judge are taken together."""
    counts: dict[str, int] = {}
    for one in _asked(report):
        for served in one.served:
            counts[served.model] = counts.get(served.model, 0) + served.replies
    return ", ".join(f"{model} ({count})" for model, count in sorted(counts.items()))


def _primary(report: Report, say: Callable[[JudgeUsed], str]) -> str:
    return ", ".join(dict.fromkeys(say(one) for one in report.provenance.judges if one.primary))
