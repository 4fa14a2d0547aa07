"""Runs side by side: their overall scores and metrics, and the versions in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.runs.models import Run
from evaluation.runs.selecting import project_named, question_set_named
from review.reporting.as_json import summary_json
from review.reporting.report import Report

MOST = 50  # runs shown side by side


def compared_runs(project_name: str, questions: str) -> list[Run]:
    """The newest runs of a project, oldest first; of one version of a question set where it is named.

    :raises UnknownName: for a project or set that does not exist.
    :raises Refused: when several projects exist and none is named.
    """
    project = project_named(project_name)
    runs = Run.objects.filter(project=project).exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED])
    if questions:
        runs = runs.filter(answer_set__question_set=question_set_named(project, questions))
    return list(runs.order_by("-id")[:MOST])[::-1]


def differing_versions(reports: Sequence[Report]) -> dict[str, list[str]]:
    """What the runs do not have in common, by kind: question set, profile, judges with their rubrics, metric versions.
    Figures of runs that differ here are not comparable as they stand."""
    kinds = {
        "question_set": [r.header.question_set for r in reports],
        "profile": [r.header.profile for r in reports],
        "judge": [_judges(r) for r in reports],
        "metrics": [_metrics(r) for r in reports],
    }
    return {kind: values for kind, values in kinds.items() if len(set(values)) > 1}


def side_by_side(reports: Sequence[Report]) -> dict[str, Any]:
    """The comparison as JSON: per run what its report says of overall score and metrics, and what differs."""
    runs = []
    for report in reports:
        summary = summary_json(report)
        runs.append({key: summary[key] for key in ("run", "overall", "metrics", "by_category", "latency")})
    return {"runs": runs, "differs": differing_versions(reports)}


def _judges(report: Report) -> str:
    return ", ".join(
        f"{one.judge.name}@{one.judge.version} {one.rubric.name} v{one.rubric.version} ({one.language})"
        for one in report.provenance.judges
        if one.primary
    )


def _metrics(report: Report) -> str:
    return ", ".join(f"{one.name} v{one.version}" for one in report.provenance.metrics)
