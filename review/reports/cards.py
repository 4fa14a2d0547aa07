"""Cards of a report for the run page and the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import get_language

from evaluation.core.metric_specs import Bilingual
from evaluation.messages.explanations import explain_judge_warning
from review.calibration.approvals import RunApproval
from review.reports.category_cards import CategoryCard, ProfileCard, category_card, profile_card
from review.reports.entries import Output
from review.reports.figure_cards import DISAGREEMENT_COUNT, MetricTable, OverallCard, metric_table, overall_card
from review.reports.lines import Disagreement, HopsLine
from review.reports.provenance_facts import Fact, provenance_facts
from review.reports.report import Report
from review.reports.retrieval import RetrievalFigure, titled_figures
from review.reports.verdict import Verdict, missing_headline_reason, verdict_of


@dataclass(frozen=True, slots=True)
class ReportCards:
    """Cards of a report. An incomplete run has no score but a ``reason``.

    ``doubts`` list reasons to distrust the judge. ``linked`` adds links on the page. ``leads`` and ``assumes`` are the
    reader's rights to manage reviews and to accept the assumption on unrated parts. ``plan_note`` states the basis of
    the planned review."""

    report: Report
    reason: str
    doubts: tuple[str, ...]
    baseline: bool
    verdict: Verdict
    overall: OverallCard
    categories: CategoryCard
    disagreements: Sequence[Disagreement]
    profile: ProfileCard
    metrics: MetricTable
    facts: tuple[Fact, ...]
    linked: bool
    leads: bool
    assumes: bool
    plan_note: str

    @property
    def hops(self) -> tuple[HopsLine, ...]:
        """Figures by hops, if there are at least two lines and a score."""
        lines = self.report.hops
        return lines if len(lines) > 1 and any(line.judge_only.value is not None for line in lines) else ()

    @property
    def approvals(self) -> tuple[tuple[Bilingual, RunApproval], ...]:
        titles = {line.name: line.title for line in self.report.metrics}
        fallback_titles = (
            (approval, Bilingual(approval.metric, approval.metric)) for approval in self.report.approvals
        )
        return tuple((titles.get(approval.metric, name), approval) for approval, name in fallback_titles)

    @property
    def retrieval(self) -> tuple[tuple[Bilingual, RetrievalFigure], ...]:
        return titled_figures(self.report.retrieval) if self.report.retrieval else ()


def report_cards(
    report: Report, output: Output, *, leads: bool = False, assumes: bool = False, plan_note: str = ""
) -> ReportCards:
    language = get_language() or "en"
    return ReportCards(
        report=report,
        reason=missing_headline_reason(report),
        doubts=tuple(explain_judge_warning(doubt.code, doubt.params) for doubt in report.doubts),
        baseline=any(judge.baseline for judge in report.provenance.judges if judge.primary),
        verdict=verdict_of(report),
        overall=overall_card(report, {line.name: line.title.in_language(language) for line in report.metrics}, output),
        categories=category_card(report, output),
        disagreements=report.disagreements[:DISAGREEMENT_COUNT],
        profile=profile_card(report),
        metrics=metric_table(report, output),
        facts=provenance_facts(report.provenance),
        linked=output is Output.PAGE,
        leads=leads,
        assumes=assumes,
        plan_note=plan_note,
    )
