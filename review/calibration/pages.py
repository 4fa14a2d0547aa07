"""View models of the judge prompt workbench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.samples import QuestionSpec, Result
from evaluation.judges.shipped import shipped_rubric_row
from evaluation.judging.draft_checks import rubric_yaml, unified_diff
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_reason, explain_refusal
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricVersion, Run
from review.agreement.plots import STATISTICS, Plot, PlotTable, TrendLine
from review.calibration.anchors import CheckSummary, is_proven, latest_passed_result, summarize_checks
from review.calibration.forms import WordingForm
from review.calibration.holdout_rules import HoldoutForecast, forecast_holdout_test, prepare_holdout_test
from review.calibration.holdout_tests import advance_holdout_test
from review.calibration.overview import GoldMetric, GoldOverview, overview
from review.calibration.search import advance_search
from review.calibration.workbench import (
    ClosenessChange,
    Disagreement,
    DisagreementFilter,
    ValidationMeasure,
    VersionRow,
    Workbench,
    closeness_changes,
    disagreements,
    measure_version,
    pending_runs,
    ratings_of_labels,
    version_history,
)
from review.charts.forest import Moment, timeline
from review.evidence.scorers import metric_title
from review.models import AnchorCheck, HoldoutTest, HoldoutTestResult, Search
from review.statistics.acceptance import Claim
from review.statistics.agreement.catalogue import STATISTIC_NAMES

PER_PAGE = 10
RESAMPLES = 1000
DIRECTIONS: tuple[tuple[int, str | Promise], ...] = (
    (0, _("any direction")),
    (1, _("judge scored higher")),
    (-1, _("judge scored lower")),
)


class StatisticRow(NamedTuple):
    """One agreement statistic on validation; ``reason`` says why there is none."""

    name: str
    value: float | None
    interval: str
    reason: str


class DisagreementCase(NamedTuple):
    """A disagreement with its question, answer and passages, and the values of judge and experts with their level
    texts. ``experts`` holds a comment with each value."""

    disagreement: Disagreement
    answer: Answer
    question: QuestionSpec
    judge: str
    active: str
    experts: Sequence[tuple[str, str]]


class Step(NamedTuple):
    """A step of calibration. ``missing`` says what it waits for."""

    anchor: str
    title: str
    done: bool
    missing: str = ""


class TrialResult(NamedTuple):
    """Results of judging one answer without storing them, by metric title."""

    question: str
    results: Sequence[tuple[str, Result]]


@dataclass(frozen=True, slots=True)
class DraftInput:
    """Input that was not saved: of the plain fields, or YAML with its errors."""

    form: WordingForm | None = None
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
    opened: str = ""
    draft_input: DraftInput = EMPTY_DRAFT
    trial: TrialResult | None = None
    tests: Sequence[HoldoutTest] = ()
    searches: Sequence[Search] = ()
    history: Sequence[VersionRow] = ()
    measures: Sequence[ValidationMeasure] = ()
    changes: Sequence[ClosenessChange] = ()
    pending_runs: Sequence[Run] = ()
    refusal: str = ""
    forecast: Sequence[HoldoutForecast] = ()
    passed_result: HoldoutTestResult | None = None
    approved_judges: Sequence[JudgeVersion] = ()
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
    def form(self) -> WordingForm:
        return self.draft_input.form or WordingForm(self.version.rubric)

    @property
    def metric_names(self) -> set[str]:
        return {metric.name for metric in self.metrics}

    @property
    def label_metrics(self) -> list[GoldMetric]:
        """Labelled metrics of the rubric."""
        return [metric for metric in self.gold.metrics if metric.metric in self.metric_names]

    @property
    def untestable(self) -> GoldMetric | None:
        """Metric of the rubric that lacks the most labels for a hold-out test."""
        metrics = [metric for metric in self.label_metrics if not metric.is_testable]
        return max(metrics, key=lambda metric: (metric.lacks_answers, metric.lacks_groups), default=None)

    @property
    def unjudged(self) -> int:
        """Number of open labels without a score of the version."""
        scores = self.workbench.scores_by_version.get(self.version.pk, {})
        return sum((item.answer_id, item.metric_id) not in scores for item in self.workbench.items)

    @cached_property
    def steps(self) -> list[Step]:
        """The five steps, with what each waits for."""
        accepted = self.passed_result is not None
        no_draft = "" if accepted or not self.is_active else gettext("Save a draft first.")
        not_judged = "" if self.has_verdicts else gettext("Not judged yet.")
        barred = gettext("You opened the full figures.") if self.opened else ""
        return [
            Step("labels", gettext("Labels"), not self.untestable, shortage_text(self.untestable)),
            Step("differ", gettext("Disagreements"), self.has_verdicts, not_judged),
            Step("edit", gettext("Edit"), accepted or not self.is_active, barred),
            Step("compare", gettext("Compare"), accepted or bool(self.changes), no_draft or not_judged),
            Step("accept", gettext("Test and accept"), accepted, no_draft or self.refusal),
        ]

    @property
    def current_step(self) -> Step | None:
        """First step that is not done."""
        return next((step for step in self.steps if not step.done), None)

    @property
    def test_blocked(self) -> str:
        """Return why the button of the hold-out test is disabled; empty if it is not."""
        test = self.latest_test
        if test and not hasattr(test, "result") and not getattr(test, "waits_for", ""):
            return gettext("Hold-out test running.")
        return "" if self.approved_judges else self.steps[-1].missing

    @property
    def latest_test(self) -> HoldoutTest | None:
        """Newest hold-out test of the version."""
        return next((test for test in self.tests if test.candidate_id == self.version.pk), None)

    @property
    def is_pending(self) -> bool:
        return is_pending(self.workbench, self.version)

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
    def close_shares(self) -> list[tuple[ClosenessChange, str]]:
        """Share of answers close to the experts before and after, with its title."""
        return [(change, closeness_title(change)) for change in self.changes]

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
    opened: str = "",
    draft_input: DraftInput = EMPTY_DRAFT,
    trial: TrialResult | None = None,
) -> WorkbenchPage:
    """Build the page of a version and judge; ``query`` holds the disagreement filters."""
    filters, page = _parse_filters(query), parse_int(query.get("page", ""), 4) or 0
    rows = disagreements(workbench, version, filters)
    is_active = version.pk == workbench.active.pk
    passed_result = latest_passed_result(workbench.judge, version) if is_active else None
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
        opened=opened,
        draft_input=draft_input,
        trial=trial,
        tests=list(_with_related(tests).order_by("-number")),
        searches=_searches(workbench),
        history=version_history(workbench),
        measures=measure_version(workbench, version, resamples=RESAMPLES),
        changes=() if is_active else closeness_changes(workbench, version),
        pending_runs=pending_runs(workbench, version),
        refusal=_test_refusal(workbench, version, Claim.NOT_WORSE if is_active else Claim.BETTER, leads),
        forecast=() if is_active else forecast_holdout_test(workbench.gold_set, workbench.judge, version),
        passed_result=passed_result,
        approved_judges=[
            judge for judge in judges if leads and judge.name != workbench.judge.name and is_proven(judge, workbench)
        ],
        checks=summarize_checks(AnchorCheck.objects.filter(result=passed_result)) if passed_result else (),
        disagreements=rows,
        cases=_load_cases(rows[page * PER_PAGE : (page + 1) * PER_PAGE], version, workbench.active),
    )


def _test_refusal(workbench: Workbench, version: RubricVersion, claim: Claim, leads: bool) -> str:
    """Return why the user cannot run a hold-out test of the version now; empty if nothing is against it."""
    if not leads:
        return gettext("Ask a lead to run the hold-out test.")
    try:
        prepare_holdout_test(workbench.gold_set, workbench.judge, version, claim=claim)
    except DomainError as refusal:
        return explain_refusal(refusal)
    return ""


def shortage_text(metric: GoldMetric | None) -> str:
    """Return what the hold-out test needs and what there is; empty without a metric."""
    if metric is None:
        return ""
    return gettext(
        "Needs %(needed)s rated answers in %(needed_groups)s question groups. Available: %(answers)s in %(groups)s."
    ) % {
        "needed": metric.needed_answers,
        "needed_groups": metric.needed_groups,
        "answers": metric.answers,
        "groups": metric.groups,
    }


def closeness_title(change: ClosenessChange) -> str:
    if not change.tolerance:
        return gettext("Same as the experts")
    if change.metric.read_scale().levels:
        return gettext("Within one level of the experts")
    return gettext("Within %(distance)s of the experts") % {"distance": numbers.format_number(change.tolerance)}


def is_pending(workbench: Workbench, version: RubricVersion) -> bool:
    """Return whether workers are judging by the version for this page. Two queries."""
    tests = HoldoutTest.objects.filter(gold_set=workbench.gold_set, candidate=version, result=None)
    return (
        any(run.state != Run.State.PAUSED for run in pending_runs(workbench, version))
        or tests.alias(waits_for=advance_holdout_test.problem()).filter(waits_for="").exists()
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


def _load_cases(rows: Sequence[Disagreement], version: RubricVersion, active: RubricVersion) -> list[DisagreementCase]:
    """Load passages and ratings of a page of disagreements. Three queries.

    Values of experts have the level texts of the rubric they rated by, else of the active version."""
    answers = Answer.objects.filter(pk__in=[row.item.answer_id for row in rows])
    by_key = answers.select_related("question").prefetch_related("contexts").in_bulk()
    ratings = ratings_of_labels([row.item for row in rows])
    cases = []
    for row in rows:
        answer, metric = by_key[row.item.answer_id], row.item.metric
        judge = _with_level_text(row.score.value, metric, version)
        active_value = _with_level_text(row.active_score.value, metric, active) if row.active_score else ""
        experts = [
            (_with_level_text(rating.value, metric, rating.rubric_version or active), rating.comment)
            for rating in ratings.get((row.item.answer_id, row.item.metric_id), ())
        ]
        cases.append(DisagreementCase(row, answer, answer.question.read(), judge, active_value, experts))
    return cases


def _with_level_text(value: float | None, metric: MetricDefinition, version: RubricVersion) -> str:
    """Return a value with the text of its level; the value alone where the rubric has no such level."""
    text = numbers.on_scale(value, metric.read_scale())
    levels = [row.levels for row in version.rubric.metrics if row.name == metric.name]
    level_text = next((level.text for row in levels for level in row if level.value == value), "")
    return f"{text}: {level_text}" if level_text else text


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
    caption = gettext("%(metric)s: validation agreement by version") % {"metric": title}
    table = PlotTable(
        caption,
        gettext("Version"),
        (str(STATISTICS[statistic][0]), gettext("Mean squared error"), gettext("Answers")),
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
