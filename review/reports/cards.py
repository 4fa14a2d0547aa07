"""What the run page and the HTML report show of a report: cards of the same templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import get_language

from evaluation.core.metric_specs import Bilingual
from evaluation.messages.sentences import explain_doubt
from review.calibration.licences import RunLicence
from review.reports.category_cards import CategoryCard, ProfileCard, category_card, profile_card
from review.reports.entries import Output
from review.reports.figure_cards import FURTHEST, MetricTable, OverallCard, metric_table, overall_card
from review.reports.lines import Disagreement, HopsLine
from review.reports.provenance_facts import Fact, provenance_facts
from review.reports.report import Report
from review.reports.retrieval import RetrievalFigure, titled
from review.reports.verdict import Verdict, verdict_of, why_no_headline


@dataclass(frozen=True, slots=True)
class ReportCards:
    """The cards of a report. While the run is not complete it has no score to show, and ``reason`` says why. ``doubts``
    are what makes its judge less to be trusted. On the page texts are ``linked``, and a reader ``leads`` reviews and
    ``assumes`` what the judge is like where nobody rated; ``plan_note`` says what the next review is guessed from."""

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
        """The run by the facts its questions link, where that tells several apart."""
        lines = self.report.hops
        return lines if len(lines) > 1 and any(one.judge_only.value is not None for one in lines) else ()

    @property
    def licences(self) -> tuple[tuple[Bilingual, RunLicence], ...]:
        """What the judge's prompts have proved, with the titles of the metrics."""
        titles = {line.name: line.title for line in self.report.metrics}
        plain = ((one, Bilingual(one.metric, one.metric)) for one in self.report.licences)
        return tuple((titles.get(one.metric, name), one) for one, name in plain)

    @property
    def retrieval(self) -> tuple[tuple[Bilingual, RetrievalFigure], ...]:
        """Retrieval metrics corrected for passages that nobody rated."""
        return titled(self.report.retrieval) if self.report.retrieval else ()


def report_cards(
    report: Report, output: Output, *, leads: bool = False, assumes: bool = False, plan_note: str = ""
) -> ReportCards:
    """The cards of a report on the page or in the HTML file."""
    language = get_language() or "en"
    return ReportCards(
        report=report,
        reason=why_no_headline(report),
        doubts=tuple(explain_doubt(one.code, one.params) for one in report.doubts),
        baseline=any(judge.baseline for judge in report.provenance.judges if judge.primary),
        verdict=verdict_of(report),
        overall=overall_card(report, {line.name: line.title.in_language(language) for line in report.metrics}, output),
        categories=category_card(report, output),
        disagreements=report.disagreements[:FURTHEST],
        profile=profile_card(report),
        metrics=metric_table(report, output),
        facts=provenance_facts(report.provenance),
        linked=output is Output.PAGE,
        leads=leads,
        assumes=assumes,
        plan_note=plan_note,
    )
