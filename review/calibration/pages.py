"""View models of the judge prompt workbench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import parse_int
from evaluation.core.samples import Result
from evaluation.judges.shipped import shipped_rubric_row
from evaluation.judging.draft_checks import rubric_yaml, unified_diff
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricVersion
from review.agreement.plots import STATISTICS, Plot, PlotTable, TrendLine
from review.calibration.anchors import CheckSummary, is_proven, latest_proof, summarize_checks
from review.calibration.holdout_rules import HoldoutForecast, forecast_holdout_test
from review.calibration.holdout_tests import advance_holdout_test
from review.calibration.overview import GoldOverview, overview
from review.calibration.search import advance_search
from review.calibration.workbench import (
    Disagreement,
    DisagreementFilter,
    ValidationMeasure,
    VersionRow,
    Workbench,
    disagreements,
    measure_version,
    ratings_of_labels,
    version_history,
)
from review.charts.forest import Moment, timeline
from review.evidence.scorers import metric_title
from review.models import AnchorCheck, HoldoutTest, HoldoutTestResult, Rating, Search
from review.statistics.agreement.catalogue import STATISTIC_NAMES

PER_PAGE = 10
RESAMPLES = 1000
DIRECTIONS: tuple[tuple[int, str | Promise], ...] = (
    (0, _("either way")),
    (1, _("the judge gave more")),
    (-1, _("the judge gave less")),
)


class StatisticRow(NamedTuple):
    """One agreement statistic on validation; ``reason`` says why there is none."""

    name: str
    value: float | None
    interval: str
    reason: str


class DisagreementCase(NamedTuple):
    """A disagreement with its answer, passages and the expert ratings behind the label."""

    disagreement: Disagreement
    answer: Answer
    ratings: Sequence[Rating]


class TrialResult(NamedTuple):
    """Results of judging one answer without storing them, by metric title."""

    question: str
    results: Sequence[tuple[str, Result]]


@dataclass(frozen=True, slots=True)
class DraftInput:
    """Input of the draft form, with the errors that kept it from being saved."""

    text: str = ""
    note: str = ""
    errors: Sequence[str] = ()


EMPTY_DRAFT = DraftInput()


@dataclass(frozen=True)
class WorkbenchPage:
    """Context of ``review/calibration/workbench.html``."""

    workbench: Workbench
    version: RubricVersion
    gold: GoldOverview
    judges: Sequence[JudgeVersion]
    families: Sequence[str]
    filters: DisagreementFilter
    page: int
    leads: bool
    draft_input: DraftInput = EMPTY_DRAFT
    trial: TrialResult | None = None
    tests: Sequence[HoldoutTest] = ()
    searches: Sequence[Search] = ()
    history: Sequence[VersionRow] = ()
    measures: Sequence[ValidationMeasure] = ()
    forecast: Sequence[HoldoutForecast] = ()
    proof: HoldoutTestResult | None = None
    proven_judges: Sequence[JudgeVersion] = ()
    checks: Sequence[CheckSummary] = ()
    disagreements: Sequence[Disagreement] = ()
    cases: Sequence[DisagreementCase] = field(default=())

    @property
    def status(self) -> str:
        return str(self.workbench.statuses.status_of(self.version).label)

    @property
    def strategies(self) -> list[tuple[str, str | Promise]]:
        return list(Search.Strategy.choices)

    @property
    def is_active(self) -> bool:
        return self.version.pk == self.workbench.active.pk

    @property
    def has_shifts(self) -> bool:
        """Return whether any anchor check had enough verdicts to test for drift."""
        return any(check.shifts for check in self.checks)

    @property
    def has_drifted(self) -> bool:
        """Return whether any anchor check found drift."""
        return any(shift.moved for check in self.checks for shift in check.shifts)

    @property
    def is_draft(self) -> bool:
        return self.workbench.statuses.status_of(self.version) == "draft"

    @property
    def difference(self) -> list[tuple[str, str]]:
        """Diff against the active version, as pairs of CSS class and line."""
        lines = unified_diff(
            self.workbench.active.rubric, self.version.rubric, (str(self.workbench.active), str(self.version))
        )
        kinds = {"+": "ins", "-": "del"}
        return [(kinds.get(line[:1], "") if line[:3] not in {"+++", "---"} else "", line) for line in lines]

    @property
    def text(self) -> str:
        """Rubric YAML in the editor."""
        return self.draft_input.text or rubric_yaml(self.version.rubric)

    @property
    def other_language_rubric(self) -> tuple[RubricVersion, str]:
        """Shipped rubric of the other language, with its YAML."""
        row = shipped_rubric_row(self.version.family, "en" if self.version.language == "ko" else "ko")
        return row, rubric_yaml(row.rubric)

    @property
    def categories(self) -> list[str]:
        return sorted({item.category for item in self.workbench.items})

    @property
    def metrics(self) -> list[MetricDefinition]:
        return list(self.workbench.metrics.values())

    @property
    def directions(self) -> tuple[tuple[int, str | Promise], ...]:
        return DIRECTIONS

    @property
    def has_verdicts(self) -> bool:
        """Return whether the version has verdicts on validation."""
        return any(measure.n for measure in self.measures)

    @property
    def statistics(self) -> list[tuple[ValidationMeasure, list[StatisticRow]]]:
        """Agreement statistics of each metric that has verdicts."""
        return [(measure, _statistics(measure)) for measure in self.measures if measure.n]

    @property
    def lines(self) -> list[TrendLine]:
        """Headline statistic by version, for each metric with verdicts of at least two versions."""
        trend_lines = []
        for index, metric in enumerate(self.metrics):
            rows = [(row.version, row.measures[index]) for row in self.history if row.measures[index].n]
            if len(rows) > 1:
                trend_lines.append(_line(metric, rows))
        return trend_lines

    @property
    def query(self) -> str:
        """Query string of the judge and version."""
        return f"judge={self.workbench.judge.pk}&family={self.workbench.family}&rubric={self.version.pk}"

    @property
    def filter_query(self) -> str:
        """Query string of the judge, version and filters."""
        filters, category_query = self.filters, QueryDict(mutable=True)
        category_query["category"] = "" if filters.category is None else filters.category
        category_part = f"&{category_query.urlencode()}" if filters.category is not None else ""
        metric_part = f"&metric={filters.metric or ''}{category_part}"
        return f"{self.query}{metric_part}&toward={filters.direction}&least={filters.min_distance:g}"

    @property
    def previous_url(self) -> str:
        return f"?{self.filter_query}&page={self.page - 1}" if self.page else ""

    @property
    def next_url(self) -> str:
        has_more = len(self.disagreements) > (self.page + 1) * PER_PAGE
        return f"?{self.filter_query}&page={self.page + 1}" if has_more else ""


def workbench_page(
    workbench: Workbench,
    version: RubricVersion,
    *,
    judges: Sequence[JudgeVersion],
    families: Sequence[str],
    query: QueryDict,
    leads: bool,
    draft_input: DraftInput = EMPTY_DRAFT,
    trial: TrialResult | None = None,
) -> WorkbenchPage:
    """Build the page of a version and judge; ``query`` holds the disagreement filters."""
    filters, page = _parse_filters(query), parse_int(query.get("page", ""), 4) or 0
    rows = disagreements(workbench, version, filters)
    proof = latest_proof(workbench.judge, version) if version.pk == workbench.active.pk else None
    tests = HoldoutTest.objects.filter(
        lineage=workbench.gold_set.name, project=workbench.gold_set.project_id, candidate__family=workbench.family
    )
    return WorkbenchPage(
        workbench=workbench,
        version=version,
        gold=overview(workbench.gold_set),
        judges=judges,
        families=families,
        filters=filters,
        page=page,
        leads=leads,
        draft_input=draft_input,
        trial=trial,
        tests=list(_with_related(tests).order_by("-number")),
        searches=_searches(workbench),
        history=version_history(workbench),
        measures=measure_version(workbench, version, resamples=RESAMPLES),
        forecast=()
        if version.pk == workbench.active.pk
        else forecast_holdout_test(workbench.gold_set, workbench.judge, version),
        proof=proof,
        proven_judges=[
            judge for judge in judges if leads and judge.name != workbench.judge.name and is_proven(judge, workbench)
        ],
        checks=summarize_checks(AnchorCheck.objects.filter(result=proof)) if proof else (),
        disagreements=rows,
        cases=_load_cases(rows[page * PER_PAGE : (page + 1) * PER_PAGE]),
    )


def _with_related(tests: QuerySet[HoldoutTest]) -> QuerySet[HoldoutTest]:
    names = ("candidate", "active", "judge_version", "against__candidate", "against__judge_version")
    return tests.select_related(*names, "result").annotate(waits_for=advance_holdout_test.problem())


def _searches(workbench: Workbench) -> list[Search]:
    """Return searches for judges of this name, newest first. Two queries."""
    rows = Search.objects.filter(
        gold_set__project=workbench.gold_set.project_id,
        gold_set__name=workbench.gold_set.name,
        judge_version__name=workbench.judge.name,
        family=workbench.family,
    )
    rows = rows.select_related("active", "result__version").prefetch_related("runs__run")
    return list(rows.annotate(waits_for=advance_search.problem()).order_by("-pk"))


def _parse_filters(query: QueryDict) -> DisagreementFilter:
    direction = {"1": 1, "-1": -1}.get(query.get("toward", ""), 0)
    try:
        min_distance = max(0.0, min(1e6, float(query.get("least", "") or 0)))
    except ValueError:
        min_distance = 0.0
    category = query.get("category", "*")
    return DisagreementFilter(
        metric=parse_int(query.get("metric", ""), 9) or 0,
        category=None if category == "*" else category,
        direction=direction,
        min_distance=min_distance if min_distance == min_distance else 0.0,
    )


def _load_cases(rows: Sequence[Disagreement]) -> list[DisagreementCase]:
    """Load passages and ratings of a page of disagreements. Two queries."""
    answers = Answer.objects.filter(pk__in=[row.item.answer_id for row in rows])
    by_key = answers.select_related("question").prefetch_related("contexts").in_bulk()
    ratings = ratings_of_labels([row.item for row in rows])
    return [
        DisagreementCase(row, by_key[row.item.answer_id], ratings.get((row.item.answer_id, row.item.metric_id), ()))
        for row in rows
    ]


def trial_result(question: str, workbench: Workbench, results: dict[str, Result]) -> TrialResult:
    """Label results with the titles of their metrics."""
    language = get_language() or "en"
    titles = {row.name: metric_title(row).in_language(language) for row in workbench.metrics.values()}
    return TrialResult(question, [(titles.get(name, name), result) for name, result in results.items()])


def _statistics(measure: ValidationMeasure) -> list[StatisticRow]:
    rows, agreement = [], measure.agreement
    for name in STATISTIC_NAMES:
        statistic = agreement.statistics[name]
        interval = agreement.intervals.get(name)
        if statistic.value is not None:
            rows.append(StatisticRow(name, statistic.value, numbers.format_interval(*interval) if interval else "", ""))
        elif measure.statistic == name:
            rows.append(StatisticRow(name, None, "", explain_reason(statistic.reason)))
    return rows


def _line(metric: MetricDefinition, rows: Sequence[tuple[RubricVersion, ValidationMeasure]]) -> TrendLine:
    title, statistic = metric_title(metric).in_language(get_language() or "en"), rows[0][1].statistic
    caption = gettext("%(metric)s: agreement on validation by version") % {"metric": title}
    table = PlotTable(
        caption,
        gettext("Version"),
        (str(STATISTICS[statistic][0]), gettext("Mean squared distance"), gettext("Answers")),
        tuple(
            (
                f"v{version.version}",
                (
                    "–" if measure.headline is None else numbers.format_number(measure.headline),
                    "–" if measure.loss is None else numbers.format_number(measure.loss, 3),
                    str(measure.n),
                ),
            )
            for version, measure in rows
        ),
    )
    return TrendLine(
        title, statistic, Plot(timeline([Moment(f"v{v.version}", measure.headline) for v, measure in rows]), table)
    )
