"""From a run to its report."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import Count, Q

from evaluation.models import Run, WorkUnit
from evaluation.work.units import HELD
from review.evidence.run_evidence import Said
from review.reports.by_profile.making import profile_section
from review.reports.doubting import doubts_of
from review.reports.evaluation_section import evaluation_section
from review.reports.extremes import answer_lines, disagreements, worst_answers
from review.reports.gathering import Gathered, gather
from review.reports.lines import answer_latency, category_lines, metric_lines
from review.reports.overall import three_scores
from review.reports.provenance import Provenance
from review.reports.report import Report, RunHeader
from review.reports.tracing import provenance_of
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
