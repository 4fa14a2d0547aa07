"""The workbench of judge prompts and the list of gold sets, as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import whole_number
from evaluation.core.samples import Result
from evaluation.judges.shipping import shipped_rubric_row
from evaluation.judging.drafting import as_yaml, differences
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricVersion
from review.agreement.plots import STATISTICS, Plot, TrendLine, Twin
from review.calibration.accepting import Foreseen, foresee
from review.calibration.anchors import CheckTold, proof_of, proves, told_of
from review.calibration.looking import take_look
from review.calibration.overview import GoldOverview, overview
from review.calibration.searching import advance_search
from review.calibration.workbench import (
    Bench,
    Disagreement,
    Measured,
    VersionRow,
    Wanted,
    comments_on,
    disagreements,
    history,
    measured,
)
from review.charts.forest import Moment, timeline
from review.evidence.scorers import title_of
from review.models import AnchorCheck, Look, LookResult, Rating, Search
from review.statistics.agreement.catalogue import NAMES

PER_PAGE = 10
RESAMPLES = 1000
TOWARD: tuple[tuple[int, str | Promise], ...] = (
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


class Shown(NamedTuple):
    """A disagreement with its passages and what the experts behind the label said."""

    one: Disagreement
    answer: Answer
    ratings: Sequence[Rating]


class Tried(NamedTuple):
    """What the judge made of one answer just now, by metric title."""

    question: str
    results: Sequence[tuple[str, Result]]


@dataclass(frozen=True, slots=True)
class Entered:
    """A draft that was sent and could not be kept."""

    text: str = ""
    note: str = ""
    errors: Sequence[str] = ()


NOTHING = Entered()


@dataclass(frozen=True)
class WorkbenchPage:
    """Everything that ``review/calibration/workbench.html`` shows."""

    bench: Bench
    version: RubricVersion
    gold: GoldOverview
    judges: Sequence[JudgeVersion]
    families: Sequence[str]
    wanted: Wanted
    page: int
    leads: bool
    entered: Entered = NOTHING
    tried: Tried | None = None
    looks: Sequence[Look] = ()
    searches: Sequence[Search] = ()
    history: Sequence[VersionRow] = ()
    measures: Sequence[Measured] = ()
    forecast: Sequence[Foreseen] = ()
    proof: LookResult | None = None
    besides: Sequence[JudgeVersion] = ()
    checks: Sequence[CheckTold] = ()
    found: Sequence[Disagreement] = ()
    shown: Sequence[Shown] = field(default=())

    @property
    def standing(self) -> str:
        """How the version stands for the judge."""
        return str(self.bench.stand.of(self.version).label)

    @property
    def strategies(self) -> list[tuple[str, str | Promise]]:
        """By what a machine may look for a better version."""
        return list(Search.Strategy.choices)

    @property
    def is_active(self) -> bool:
        """Whether it is the version in force."""
        return self.version.pk == self.bench.active.pk

    @property
    def checked(self) -> bool:
        """Whether a check tested for a move of the judge."""
        return any(one.shifts for one in self.checks)

    @property
    def moved(self) -> bool:
        """Whether any check found that the judge moved."""
        return any(shift.moved for one in self.checks for shift in one.shifts)

    @property
    def is_draft(self) -> bool:
        """Whether it can be offered."""
        return self.bench.stand.of(self.version) == "draft"

    @property
    def difference(self) -> list[tuple[str, str]]:
        """What the version says differently from the one in force: a class of the style sheet and the line."""
        lines = differences(self.bench.active.rubric, self.version.rubric, (str(self.bench.active), str(self.version)))
        kinds = {"+": "ins", "-": "del"}
        return [(kinds.get(line[:1], "") if line[:3] not in {"+++", "---"} else "", line) for line in lines]

    @property
    def text(self) -> str:
        """The YAML to edit."""
        return self.entered.text or as_yaml(self.version.rubric)

    @property
    def twin(self) -> tuple[RubricVersion, str]:
        """The shipped rubric of the other language, to read beside it."""
        row = shipped_rubric_row(self.version.family, "en" if self.version.language == "ko" else "ko")
        return row, as_yaml(row.rubric)

    @property
    def categories(self) -> list[str]:
        """The categories of the open labels."""
        return sorted({one.category for one in self.bench.items})

    @property
    def metrics(self) -> list[MetricDefinition]:
        """The labelled metrics."""
        return list(self.bench.metrics.values())

    @property
    def toward(self) -> tuple[tuple[int, str | Promise], ...]:
        """The choices of a direction."""
        return TOWARD

    @property
    def judged(self) -> bool:
        """Whether the version has verdicts on validation."""
        return any(one.n for one in self.measures)

    @property
    def statistics(self) -> list[tuple[Measured, list[StatisticRow]]]:
        """All agreement statistics of each metric that has verdicts."""
        return [(one, _statistics(one)) for one in self.measures if one.n]

    @property
    def lines(self) -> list[TrendLine]:
        """The headline statistic over the versions, for each metric judged under several."""
        found = []
        for at, metric in enumerate(self.metrics):
            rows = [(row.version, row.measures[at]) for row in self.history if row.measures[at].n]
            if len(rows) > 1:
                found.append(_line(metric, rows))
        return found

    @property
    def query(self) -> str:
        """What the address says beside the page, to stay at the same judge and version."""
        return f"judge={self.bench.judge.pk}&family={self.bench.family}&rubric={self.version.pk}"

    @property
    def filtered(self) -> str:
        """The same with the filters."""
        of, category = self.wanted, QueryDict(mutable=True)
        category["category"] = "" if of.category is None else of.category
        kept = f"&{category.urlencode()}" if of.category is not None else ""
        return f"{self.query}&metric={of.metric or ''}{kept}&toward={of.toward}&least={of.least:g}"

    @property
    def newer(self) -> str:
        """The address of the page before."""
        return f"?{self.filtered}&page={self.page - 1}" if self.page else ""

    @property
    def older(self) -> str:
        """The address of the page after."""
        more = len(self.found) > (self.page + 1) * PER_PAGE
        return f"?{self.filtered}&page={self.page + 1}" if more else ""


def workbench_page(
    bench: Bench,
    version: RubricVersion,
    *,
    judges: Sequence[JudgeVersion],
    families: Sequence[str],
    asked: QueryDict,
    leads: bool,
    entered: Entered = NOTHING,
    tried: Tried | None = None,
) -> WorkbenchPage:
    """The page of one version for one judge; ``asked`` are the filters of its address."""
    wanted, page = _wanted(asked), whole_number(asked.get("page", ""), 4) or 0
    found = disagreements(bench, version, wanted)
    proof = proof_of(bench.judge, version) if version.pk == bench.active.pk else None
    looks = Look.objects.filter(
        lineage=bench.gold_set.name, project=bench.gold_set.project_id, candidate__family=bench.family
    )
    return WorkbenchPage(
        bench=bench,
        version=version,
        gold=overview(bench.gold_set),
        judges=judges,
        families=families,
        wanted=wanted,
        page=page,
        leads=leads,
        entered=entered,
        tried=tried,
        looks=list(_with_names(looks).order_by("-number")),
        searches=_searches(bench),
        history=history(bench),
        measures=measured(bench, version, resamples=RESAMPLES),
        forecast=() if version.pk == bench.active.pk else foresee(bench.gold_set, bench.judge, version),
        proof=proof,
        besides=[one for one in judges if leads and one.name != bench.judge.name and proves(one, bench)],
        checks=told_of(AnchorCheck.objects.filter(result=proof)) if proof else (),
        found=found,
        shown=_shown(found[page * PER_PAGE : (page + 1) * PER_PAGE]),
    )


def _with_names(looks: QuerySet[Look]) -> QuerySet[Look]:
    names = ("candidate", "active", "judge_version", "against__candidate", "against__judge_version")
    return looks.select_related(*names, "result").annotate(waits_for=take_look.problem())


def _searches(bench: Bench) -> list[Search]:
    """Those for the judges of the name, the newest first. Two queries."""
    rows = Search.objects.filter(
        gold_set__project=bench.gold_set.project_id,
        gold_set__name=bench.gold_set.name,
        judge_version__name=bench.judge.name,
        family=bench.family,
    )
    rows = rows.select_related("active", "result__version").prefetch_related("runs__run")
    return list(rows.annotate(waits_for=advance_search.problem()).order_by("-pk"))


def _wanted(asked: QueryDict) -> Wanted:
    toward = {"1": 1, "-1": -1}.get(asked.get("toward", ""), 0)
    try:
        least = max(0.0, min(1e6, float(asked.get("least", "") or 0)))
    except ValueError:
        least = 0.0
    category = asked.get("category", "*")
    return Wanted(
        metric=whole_number(asked.get("metric", ""), 9) or 0,
        category=None if category == "*" else category,
        toward=toward,
        least=least if least == least else 0.0,
    )


def _shown(found: Sequence[Disagreement]) -> list[Shown]:
    """Two queries for the passages and ratings of a page."""
    answers = Answer.objects.filter(pk__in=[one.item.answer_id for one in found])
    by_key = answers.select_related("question").prefetch_related("contexts").in_bulk()
    said = comments_on([one.item for one in found])
    return [
        Shown(one, by_key[one.item.answer_id], said.get((one.item.answer_id, one.item.metric_id), ())) for one in found
    ]


def tried_of(question: str, bench: Bench, results: dict[str, Result]) -> Tried:
    """The results by the titles of their metrics."""
    language = get_language() or "en"
    titles = {row.name: title_of(row).in_language(language) for row in bench.metrics.values()}
    return Tried(question, [(titles.get(name, name), one) for name, one in results.items()])


def _statistics(one: Measured) -> list[StatisticRow]:
    found, agreement = [], one.agreement
    for name in NAMES:
        of = agreement.statistics[name]
        interval = agreement.intervals.get(name)
        if of.value is not None:
            found.append(StatisticRow(name, of.value, numbers.interval(*interval) if interval else "", ""))
        elif one.statistic == name:
            found.append(StatisticRow(name, None, "", explain_reason(of.reason)))
    return found


def _line(metric: MetricDefinition, rows: Sequence[tuple[RubricVersion, Measured]]) -> TrendLine:
    title, statistic = title_of(metric).in_language(get_language() or "en"), rows[0][1].statistic
    name = gettext("%(metric)s: agreement on validation by version") % {"metric": title}
    twin = Twin(
        name,
        gettext("Version"),
        (str(STATISTICS[statistic][0]), gettext("Mean squared distance"), gettext("Answers")),
        tuple(
            (
                f"v{version.version}",
                (
                    "–" if of.headline is None else numbers.plain(of.headline),
                    "–" if of.loss is None else numbers.plain(of.loss, 3),
                    str(of.n),
                ),
            )
            for version, of in rows
        ),
    )
    return TrendLine(title, statistic, Plot(timeline([Moment(f"v{v.version}", of.headline) for v, of in rows]), twin))
