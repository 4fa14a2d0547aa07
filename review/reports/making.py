"""From a run to its report, with the ``evaluation`` section in the names and shape of source 000."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Count, Q

from evaluation.core.registry import JUDGED
from evaluation.models import Run, WorkUnit
from evaluation.profiles.arithmetic import Label
from evaluation.profiles.spec import OVERALL, ProfileSpec
from evaluation.work.units import HELD
from review.evidence.run_evidence import Said
from review.reports.by_profile.making import profile_section
from review.reports.doubting import doubts_of
from review.reports.figure import Figure
from review.reports.gathering import Gathered, gather
from review.reports.lines import (
    answer_latency,
    answer_lines,
    category_lines,
    disagreements,
    metric_lines,
    worst_answers,
)
from review.reports.overall import three_scores
from review.reports.provenance import Provenance, provenance_of
from review.reports.report import CategoryLine, MetricLine, Report, RunHeader, ThreeScores
from review.results.run_agreement import agreement_from
from review.results.variation import variation_from

OPEN = (WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD)


def make_report(run: Run) -> Report:
    """All figures of a run as they stand now, in a fixed number of queries (see its test), without any bootstrap."""
    return report_of(gather(run))


def report_of(basis: Gathered) -> Report:
    """The report of what was gathered."""
    run, profile, said, sides, correction = basis.run, basis.profile, basis.said, basis.sides, basis.correction
    found = sides.found
    overall = three_scores(run, profile, sides, basis.machine, basis.reviewed, correction)
    metrics = metric_lines(profile, sides, correction)
    categories = category_lines(profile, sides, correction)
    lines = answer_lines(profile, said, sides.reviewed, basis.reviewed, found.values)
    latency = answer_latency(said.answers.values())
    provenance = provenance_of(run, (found.metrics[pk] for pk in found.computed))
    return Report(
        header=_header(run, said, provenance),
        overall=overall,
        metrics=metrics,
        categories=categories,
        latency=latency,
        agreement=replace(agreement_from(said, basis.samples), variation=variation_from(said)).to_dict(),
        gate=None,
        next_review=None,
        provenance=provenance,
        doubts=doubts_of(run, provenance),
        evaluation=evaluation_section(profile, overall, metrics, categories, latency.mean if latency else None),
        by_profile=profile_section(basis, overall),
        worst=worst_answers(lines),
        disagreements=disagreements(said, found.values),
        answers=lines,
        removed=said.removed,
    )


def _header(run: Run, said: Said, provenance: Provenance) -> RunHeader:
    units = WorkUnit.objects.filter(run=run).aggregate(all=Count("id"), open=Count("id", filter=Q(state__in=OPEN)))
    return RunHeader(
        run_id=run.pk,
        name=str(run),
        project_id=run.project_id,
        state=run.state,
        reason=run.reason,
        complete=run.state == Run.State.COMPLETED,
        system=str(run.answer_set.system_version),
        question_set=str(run.answer_set.question_set),
        question_set_id=run.answer_set.question_set_id,
        profile=str(run.profile_version),
        judges=tuple(dict.fromkeys(f"{one.judge.name}@{one.judge.version}" for one in provenance.judges)),
        baseline_judged=any(one.baseline and one.primary for one in provenance.judges),
        answers=len(said.answers),
        units=units["all"],
        open_units=units["open"],
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def evaluation_section(
    profile: ProfileSpec,
    overall: ThreeScores,
    metrics: Sequence[MetricLine],
    categories: Sequence[CategoryLine],
    average_latency: float | None,
) -> dict[str, Any]:
    """Rates and judge means under the profile's report names, judge-only; without ``details``.

    The overall score is null unless it may be called so. A run without a judge has ``llm_judge`` null and its figure
    under ``rules_only`` with its weight.
    """
    shown = [line for line in metrics if line.name in profile.metrics and not line.latency]
    section: dict[str, Any] = _rates(profile, shown, {line.name: line.judge_only for line in shown})
    section[profile.report_name(OVERALL)] = _shown(profile, OVERALL, overall.judge_only.value)
    if overall.part_only is not None:
        section[str(overall.label)] = {"value": overall.part_only.value, "weight": round(overall.weight, 9)}
    section["avg_latency_seconds"] = average_latency
    section["by_category"] = {
        line.name: {
            **_rates(profile, shown, {name: pair[0] for name, pair in line.metrics.items()}),
            profile.report_name(OVERALL): _shown(profile, OVERALL, _overall(line, overall)),
            "avg_latency_seconds": line.latency.mean if line.latency else None,
            "count": line.answers,
        }
        for line in categories
    }
    return section


def _shown(profile: ProfileSpec, name: str, value: float | None) -> float | None:
    """The value as the profile's source shows it."""
    return None if value is None else profile.report_value(name, value)


def _rates(profile: ProfileSpec, shown: Sequence[MetricLine], figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Rule metrics at the top, judge metrics together under ``llm_judge``, as the source has them."""
    there = [line for line in shown if line.name in figures]
    values = {line.report_name: _shown(profile, line.name, figures[line.name].value) for line in there}
    judged = {line.report_name for line in shown if line.kind in JUDGED}
    rates: dict[str, Any] = {name: value for name, value in values.items() if name not in judged}
    rates["llm_judge"] = {name: value for name, value in values.items() if name in judged} or None
    return rates


def _overall(line: CategoryLine, overall: ThreeScores) -> float | None:
    return line.judge_only.value if overall.label is Label.OVERALL_SCORE else None
