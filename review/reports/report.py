"""All figures of a run as one frozen value for the run page, REST and exports.

The ``evaluation`` section keeps the names and shape of the ``graphrag`` source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext

from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.core.scales import Scale
from evaluation.models import Run, WorkUnit
from evaluation.profiles.arithmetic import FigureLabel
from evaluation.profiles.spec import OVERALL, ProfileSpec
from evaluation.worker.units import HELD_STATES
from review.agreement.run_agreement import agreement_from_evidence
from review.agreement.variation import variation_measures
from review.calibration.approvals import RunApproval, run_approvals
from review.evidence.answers import RunAnswer, answer_lengths
from review.evidence.effective import RunEvidence
from review.reports.estimates import OverallScores, overall_scores
from review.reports.figure import Figure
from review.reports.formula import Formula, formula_of
from review.reports.inputs import ReportInputs
from review.reports.lines import (
    AnswerLine,
    CategoryLine,
    Disagreement,
    HopsLine,
    Latency,
    MetricLine,
    answer_latency,
    answer_lines,
    category_lines,
    disagreements,
    hops_lines,
    metric_lines,
    worst_answers,
)
from review.reports.profile_section import ProfileSection, profile_section
from review.reports.provenance import Doubt, Provenance, doubts_of, provenance_of
from review.reports.retrieval import CorrectedRetrieval, corrected_retrieval


@dataclass(frozen=True, slots=True)
class RunHeader:
    """Identity and state of a run. ``complete``: it has a headline; otherwise see ``state`` and ``reason``.

    ``open_units`` of ``units`` are still waiting."""

    run_id: int
    name: str
    state: str
    reason: str
    complete: bool
    system: str
    question_set: str
    question_set_id: int
    profile: str
    judges: tuple[str, ...]
    baseline_judged: bool
    answers: int
    units: int
    open_units: int
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run.

    ``formula`` is ``None`` if the profile sums no parts. ``evaluation`` is the section of the ``graphrag`` source
    without details: rates, judge means, ``overall_score`` (judge-only; ``None`` unless it is a complete score) and
    ``by_category``. ``by_profile`` is the profile's own section. ``agreement`` has the form of the ``agreement``
    command. Report files add its intervals. ``gate`` is ``None`` without a gate. ``next_review`` is the next worthwhile
    review, ``None`` if there is none or none was planned. ``doubts`` list reasons to distrust the judge. ``approvals``
    list the approvals of its prompts; empty for the offline baseline. ``retrieval`` corrects retrieval figures if the
    question set lacks labels that a repair added. ``worst`` are the lowest-scored answers, ``disagreements`` the
    largest differences of judge and experts. ``removed`` answers count in no figure, because a lead upheld a flag of
    their question or reference."""

    header: RunHeader
    overall: OverallScores
    formula: Formula | None
    metrics: tuple[MetricLine, ...]
    categories: tuple[CategoryLine, ...]
    hops: tuple[HopsLine, ...]
    latency: Latency | None
    agreement: Mapping[str, Any]
    gate: Mapping[str, Any] | None
    next_review: Mapping[str, Any] | None
    provenance: Provenance
    doubts: tuple[Doubt, ...]
    approvals: tuple[RunApproval, ...]
    evaluation: Mapping[str, Any]
    by_profile: ProfileSection
    retrieval: CorrectedRetrieval | None
    worst: tuple[AnswerLine, ...]
    disagreements: tuple[Disagreement, ...]
    answers: Sequence[AnswerLine]
    removed: tuple[RunAnswer, ...]


OPEN = (WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD_STATES)


def build_report(basis: ReportInputs) -> Report:
    """Build the report. It computes only those bootstrap intervals that decide the trust in a judge."""
    run, evidence, run_values = basis.run, basis.evidence, basis.sides.run_values
    overall, metrics, categories = overall_scores(basis), metric_lines(basis), category_lines(basis)
    lines = answer_lines(basis)
    latency = answer_latency(evidence.answers.values())
    provenance = provenance_of(run, (run_values.metrics[pk] for pk in run_values.computed), evidence.imported_judges)
    agreement = agreement_from_evidence(evidence, basis.samples, answer_lengths(run))
    return Report(
        header=_header(run, evidence, provenance),
        overall=overall,
        formula=formula_of(basis),
        metrics=metrics,
        categories=categories,
        hops=hops_lines(basis),
        latency=latency,
        agreement=replace(agreement, variation=variation_measures(evidence)).to_dict(),
        gate=None,
        next_review=None,
        provenance=provenance,
        doubts=doubts_of(run, provenance),
        approvals=run_approvals(run)
        if any(judge.primary and not judge.baseline for judge in provenance.judges)
        else (),
        evaluation=_evaluation(basis.profile, overall, metrics, categories, latency.mean if latency else None),
        by_profile=profile_section(basis, overall),
        retrieval=corrected_retrieval(run),
        worst=worst_answers(lines),
        disagreements=disagreements(basis),
        answers=lines,
        removed=evidence.excluded,
    )


def _header(run: Run, evidence: RunEvidence, provenance: Provenance) -> RunHeader:
    units = WorkUnit.objects.filter(run=run).aggregate(all=Count("id"), open=Count("id", filter=Q(state__in=OPEN)))
    return RunHeader(
        run_id=run.pk,
        name=str(run),
        state=run.state,
        reason=run.reason,
        complete=run.state == Run.State.COMPLETED,
        system=str(run.answer_set.system_version),
        question_set=str(run.answer_set.question_set),
        question_set_id=run.answer_set.question_set_id,
        profile=str(run.profile_version),
        judges=tuple(
            dict.fromkeys(
                [
                    *(f"{judge.judge.name}@{judge.judge.version}" for judge in provenance.judges),
                    *provenance.imported_judges.values(),
                ]
            )
        ),
        baseline_judged=any(judge.baseline and judge.primary for judge in provenance.judges),
        answers=len(evidence.answers),
        units=units["all"],
        open_units=units["open"],
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def _evaluation(
    profile: ProfileSpec,
    overall: OverallScores,
    metrics: Sequence[MetricLine],
    categories: Sequence[CategoryLine],
    average_latency: float | None,
) -> dict[str, Any]:
    """Judge-only rates and means under the profile's report names, without ``details``.

    The overall score is null unless it is complete. A run without a judge has ``llm_judge`` null and its figure with
    weight under ``rules_only``."""
    lines = [line for line in metrics if line.name in profile.metrics and not line.latency]
    section: dict[str, Any] = _rates(profile, lines, {line.name: line.judge_only for line in lines})
    section[profile.report_name(OVERALL)] = _reported_value(profile, OVERALL, overall.judge_only.value)
    if overall.part_only is not None:
        section[str(overall.label)] = {"value": overall.part_only.value, "weight": round(overall.weight, 9)}
    section["avg_latency_seconds"] = average_latency
    is_overall = overall.label is FigureLabel.OVERALL_SCORE
    section["by_category"] = {
        line.name: {
            **_rates(profile, lines, {name: pair[0] for name, pair in line.metrics.items()}),
            profile.report_name(OVERALL): _reported_value(
                profile, OVERALL, line.judge_only.value if is_overall else None
            ),
            "avg_latency_seconds": line.latency.mean if line.latency else None,
            "count": line.answers,
        }
        for line in categories
    }
    return section


def _reported_value(profile: ProfileSpec, name: str, value: float | None) -> float | None:
    """The value in the units of the profile's source."""
    return None if value is None else profile.report_value(name, value)


def _rates(profile: ProfileSpec, lines: Sequence[MetricLine], figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Rule metrics at the top level, judge metrics under ``llm_judge``, as in the source."""
    available_lines = [line for line in lines if line.name in figures]
    values = {
        line.report_name: _reported_value(profile, line.name, figures[line.name].value) for line in available_lines
    }
    judged = {line.report_name for line in lines if line.kind in JUDGED_KINDS}
    rates: dict[str, Any] = {name: value for name, value in values.items() if name not in judged}
    rates["llm_judge"] = {name: value for name, value in values.items() if name in judged} or None
    return rates


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """Figures of one category with its number of answers."""

    name: str
    answers: int
    judge_only: Figure
    reviewed: Figure
    corrected: Figure


@dataclass(frozen=True, slots=True)
class CategoryTable:
    """Categories by one figure. ``scale`` is the metric's, or ``None`` for the overall score."""

    title: str
    scale: Scale | None
    rows: Sequence[CategoryFigures]


def category_tables(report: Report, language: str) -> tuple[CategoryTable, ...]:
    """A table of the overall score if any category has one, then one for each rated metric."""
    rows = [
        CategoryFigures(
            category.name, category.answers, category.judge_only, category.reviewed, category.corrected_overall
        )
        for category in report.categories
    ]
    tables = []
    if any(row.judge_only.value is not None for row in rows):
        tables.append(CategoryTable(gettext("Overall score"), None, rows))
    for line in report.metrics:
        if line.rated and not line.shares:
            rows = [
                CategoryFigures(
                    category.name, category.answers, *category.metrics[line.name], category.corrected[line.name]
                )
                for category in report.categories
                if line.name in category.metrics and line.name in category.corrected
            ]
            tables.append(CategoryTable(line.title.in_language(language), line.scale, rows))
    return tuple(table for table in tables if table.rows)
