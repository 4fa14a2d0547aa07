"""The figures of a run: one frozen value that the run page, REST and the exports all show, with the ``evaluation``
section in the names and shape of source 000."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext

from evaluation.core.metric_specs import JUDGED
from evaluation.core.scales import Scale
from evaluation.models import Run, WorkUnit
from evaluation.profiles.arithmetic import Label
from evaluation.profiles.spec import OVERALL, ProfileSpec
from evaluation.worker.units import HELD
from review.agreement.run_agreement import agreement_from
from review.agreement.variation import variation_from
from review.calibration.licences import RunLicence, licences_of
from review.evidence.answers import RunAnswer, lengths_of
from review.evidence.effective import Said
from review.reports.estimates import ThreeScores, three_scores
from review.reports.figure import Figure
from review.reports.formula import Formula, formula_of
from review.reports.gathering import Gathered
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
    """Which run this is. ``complete``: it ended with a headline; else ``state`` and ``reason`` say what it lacks.
    ``open_units`` is the work still waiting, ``units`` all of it."""

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

    ``formula`` is ``None`` where the profile sums no parts. ``evaluation`` is the section of source 000 without its
    details: rates and judge means, ``overall_score`` (judge-only; ``None`` unless it may be called so) and
    ``by_category``. ``by_profile`` is the profile's own section.
    ``agreement`` has the form of the ``agreement`` command; the files of the report add its intervals. ``gate`` is
    ``None``: no gate was asked for. ``next_review`` is the next review worth while, ``None`` where nothing would be
    gained or where nobody planned. ``doubts`` are what makes the judge less to be trusted,
    ``licences`` what its prompts proved; none where the offline baseline alone counts. ``retrieval`` corrects the
    retrieval figures where the set does not have every label that a repair gives. ``worst`` are the answers
    with the lowest scores, ``disagreements`` the largest distances of judge and experts first. ``removed`` are answers
    that stand in no figure and not among ``answers``, because a lead upheld a flag of their question or reference.
    """

    header: RunHeader
    overall: ThreeScores
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
    licences: tuple[RunLicence, ...]
    evaluation: Mapping[str, Any]
    by_profile: ProfileSection
    retrieval: CorrectedRetrieval | None
    worst: tuple[AnswerLine, ...]
    disagreements: tuple[Disagreement, ...]
    answers: Sequence[AnswerLine]
    removed: tuple[RunAnswer, ...]


OPEN = (WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD)


def report_of(basis: Gathered) -> Report:
    """All figures of a run as they were gathered. Of intervals by bootstrap only those that decide the trust in a
    judge."""
    run, said, found = basis.run, basis.said, basis.sides.found
    overall, metrics, categories = three_scores(basis), metric_lines(basis), category_lines(basis)
    lines = answer_lines(basis)
    latency = answer_latency(said.answers.values())
    provenance = provenance_of(run, (found.metrics[pk] for pk in found.computed), said.imported_judges)
    agreement = agreement_from(said, basis.samples, lengths_of(run))
    return Report(
        header=_header(run, said, provenance),
        overall=overall,
        formula=formula_of(basis),
        metrics=metrics,
        categories=categories,
        hops=hops_lines(basis),
        latency=latency,
        agreement=replace(agreement, variation=variation_from(said)).to_dict(),
        gate=None,
        next_review=None,
        provenance=provenance,
        doubts=doubts_of(run, provenance),
        licences=licences_of(run) if any(one.primary and not one.baseline for one in provenance.judges) else (),
        evaluation=_evaluation(basis.profile, overall, metrics, categories, latency.mean if latency else None),
        by_profile=profile_section(basis, overall),
        retrieval=corrected_retrieval(run),
        worst=worst_answers(lines),
        disagreements=disagreements(basis),
        answers=lines,
        removed=said.removed,
    )


def _header(run: Run, said: Said, provenance: Provenance) -> RunHeader:
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
                    *(f"{one.judge.name}@{one.judge.version}" for one in provenance.judges),
                    *provenance.imported_judges.values(),
                ]
            )
        ),
        baseline_judged=any(one.baseline and one.primary for one in provenance.judges),
        answers=len(said.answers),
        units=units["all"],
        open_units=units["open"],
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def _evaluation(
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
    named = overall.label is Label.OVERALL_SCORE
    section["by_category"] = {
        line.name: {
            **_rates(profile, shown, {name: pair[0] for name, pair in line.metrics.items()}),
            profile.report_name(OVERALL): _shown(profile, OVERALL, line.judge_only.value if named else None),
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


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """One category's figures, with the number of its answers."""

    name: str
    answers: int
    judge_only: Figure
    reviewed: Figure
    corrected: Figure


@dataclass(frozen=True, slots=True)
class CategoryTable:
    """The categories by one figure, named by ``title``; ``scale`` is that of a metric, ``None`` for the score."""

    title: str
    scale: Scale | None
    rows: Sequence[CategoryFigures]


def category_tables(report: Report, language: str) -> tuple[CategoryTable, ...]:
    """The overall score where any category has one, then every metric that people rated."""
    rows = [
        CategoryFigures(one.name, one.answers, one.judge_only, one.reviewed, one.corrected_overall)
        for one in report.categories
    ]
    tables = []
    if any(one.judge_only.value is not None for one in rows):
        tables.append(CategoryTable(gettext("Overall score"), None, rows))
    for line in report.metrics:
        if line.rated and not line.shares:
            rows = [
                CategoryFigures(one.name, one.answers, *one.metrics[line.name], one.corrected[line.name])
                for one in report.categories
                if line.name in one.metrics and line.name in one.corrected
            ]
            tables.append(CategoryTable(line.title.in_language(language), line.scale, rows))
    return tuple(one for one in tables if one.rows)
