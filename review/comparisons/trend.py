"""Agreement over time, run after run over one question set; and what is known of judges, their agreement and price."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from evaluation.core.metric_specs import Bilingual, MetricSpec
from evaluation.core.scales import Scale
from evaluation.judges.prices import price_table
from evaluation.judging.calls import Price
from evaluation.judging.catalogue import family_for
from evaluation.models import JudgeVersion, Preflight, RubricVersion, Run, RunJudge, Score
from evaluation.network.outcomes import Outcome
from review.agreement.run_agreement import By, kept_agreement, kept_of
from review.models import Rating
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.trust import JudgeTrust

MOST_RUNS = 12  # the newest ones; more are no longer read in one look
MANY = 5_000  # scores of a run whose agreement a request does not work out


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The agreement of a run's own judge on one metric; ``method`` is how its values come about, ``served`` the model
    that answered under its name before the run, empty where unknown. ``value`` is ``None``
    where it is undefined; ``low`` and ``high`` are ``None`` where the interval has not been computed or does not exist.
    ``period`` is filled where the points are the times of rating within one run."""

    run_id: int
    name: str
    at: datetime
    judge: str
    rubric: str
    method: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    period: str = ""
    served: str = ""


@dataclass(frozen=True, slots=True)
class Trend:
    """The points of one metric from the oldest to the newest; ``statistic`` is the name of the figure."""

    metric: str
    title: Bilingual
    statistic: str
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True, slots=True)
class Trends:
    """The trend of each metric by its name. ``left_out`` are runs with so many scores that working out their agreement
    would take half a minute of a request: they are in it once a worker has."""

    of_metric: Mapping[str, Trend]
    left_out: tuple[Run, ...]


def trends_of(run: Run) -> Trends:
    """The agreement of the newest runs with ratings over this run's question set, whatever its version; where only one
    run has ratings, that of its answers by the time of rating. Figures are those kept; where a small run has none yet
    they are computed without intervals, and kept."""
    points: dict[str, list[TrendPoint]] = {}
    titles: dict[str, Bilingual] = {}
    statistics: dict[str, str] = {}
    runs = _rated_runs(run)
    served = _served_models(runs)
    several = len(runs) > 1
    at_hand, left_out = kept_of(runs) if several else {}, []
    for one in runs:
        found = at_hand.get(one.pk)
        if found is None and several and len(Score.objects.filter(run=one)[: MANY + 1].values_list("pk")) > MANY:
            left_out.append(one)
            continue
        found = found or kept_agreement(one, resamples=0, by=By.NOTHING if several else By.PERIOD)
        for metric, author, figures in _own_judges(found):
            titles.setdefault(metric, Bilingual(**found["experts"][metric]["title"]))
            name = statistics.setdefault(metric, headline_statistic(Scale.parse(figures["scale"])))
            points.setdefault(metric, []).extend(_points(one, author, figures, name, served))
    of_metric = {metric: Trend(metric, titles[metric], statistics[metric], tuple(of)) for metric, of in points.items()}
    return Trends(of_metric, tuple(left_out))


def _rated_runs(run: Run) -> list[Run]:
    rated = Rating.objects.filter(answer__answer_set=OuterRef("answer_set"))
    runs = Run.objects.select_related(Run.NAMED_BY).filter(
        Exists(rated),
        project_id=run.project_id,
        answer_set__question_set__name=run.answer_set.question_set.name,
    )
    return list(runs.order_by("-created_at", "-id")[:MOST_RUNS])[::-1]


def _own_judges(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for author, metrics in found["judges"].items():
        for metric, figures in metrics.items():
            if figures["primary"]:
                yield metric, author, figures


def _served_models(runs: Sequence[Run]) -> dict[tuple[int, str], str]:
    """The model that each judge's preflight was answered by, by run and judge. One query."""
    pinned = Preflight.objects.filter(run__in=runs, outcome=Outcome.OK).select_related("judge_version")
    return {(one.run_id, str(one.judge_version)): one.model_returned for one in pinned}


def _points(
    run: Run, author: str, figures: Mapping[str, Any], name: str, served: Mapping[tuple[int, str], str]
) -> Iterator[TrendPoint]:
    parts: Mapping[str, Mapping[str, Any]] = figures.get("by_period", {"": figures})
    for period, of in parts.items():
        low, high = of["intervals"].get(name, (None, None))
        who, model = (author, figures["rubric"], figures["method"]), served.get((run.pk, author), "")
        yield TrendPoint(run.pk, str(run), run.created_at, *who, of["n"], of[name], low, high, period, model)


MOST_LOOKED_AT = 5  # rated runs of each judge, the newest ones


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """A metric a judge has given, by a version of a rubric; ``newer`` is the family's newest version of everybody's
    where that is newer. ``agreed`` is ``None`` where nothing is at hand; ``bias`` is the judge's mean difference from
    the experts."""

    spec: MetricSpec
    rubric: RubricVersion
    newer: int | None
    agreed: JudgeTrust | None
    bias: float | None = None


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """A judge version. ``measured`` is its newest run with ratings whose agreement is at hand, else the newest with
    ratings; ``kept`` tells which. ``newer`` is the newest version of its name where that is another. ``trouble`` is how
    its last preflight ended, empty where that was well or there was none. ``changed`` are the model that answered
    before the measured run and the one that answered last, where these differ."""

    judge: JudgeVersion
    runs: int
    last: Run | None
    measured: Run | None
    kept: bool
    metrics: tuple[MetricRecord, ...]
    price: Price | None
    newer: int | None
    trouble: str
    changed: tuple[str, str] | None = None


def judge_records(judges: Sequence[JudgeVersion]) -> list[JudgeRecord]:
    """What is known of the judges, in their order. Agreement is read, never computed; a fixed number of queries."""
    used = _used(judges)
    rubrics = RubricVersion.objects.in_bulk({pk for of in used.values() for pk in of.rubrics})
    rated = Exists(Rating.objects.filter(answer__answer_set=OuterRef("run__answer_set")))
    measured = _newest_runs(judges, RunJudge.objects.filter(rated))
    wanted = {pk for several in measured.values() for pk in several} | {of.last for of in used.values()}
    runs = Run.objects.select_related("answer_set__question_set", Run.NAMED_BY).in_bulk(wanted)
    kept = kept_of([runs[pk] for pk in sorted({pk for several in measured.values() for pk in several})])
    newest_rubrics = _newest_versions(
        RubricVersion.objects.filter(project=None, family__in={r.family for r in rubrics.values()})
    )
    names = JudgeVersion.objects.filter(project__in={j.project_id for j in judges}, name__in={j.name for j in judges})
    newest = {
        (project, name): version
        for project, name, version in names.order_by()
        .values_list("project_id", "name")
        .annotate(newest=Max("version"))
        .values_list("project_id", "name", "newest")
    }
    troubles = _troubles(judges)
    served = _served(judges, {pk for several in measured.values() for pk in several})
    table, today = price_table(), datetime.now(UTC).date()
    found = []
    for judge in judges:
        of = used.get(judge.pk, _Used((), 0, 0))
        rated_runs = measured.get(judge.pk, [])
        shown = next((pk for pk in rated_runs if pk in kept), next(iter(rated_runs), 0))
        figures = kept.get(shown, {})
        latest = newest[judge.project_id, judge.name]
        found.append(
            JudgeRecord(
                judge=judge,
                runs=of.runs,
                last=runs.get(of.last),
                measured=runs.get(shown),
                kept=bool(figures),
                metrics=_metrics(judge, [rubrics[pk] for pk in of.rubrics], newest_rubrics, figures),
                price=table.price(judge.model, today),
                newer=latest if latest != judge.version else None,
                trouble=troubles.get(judge.pk, ""),
                changed=_changed(served.get(judge.pk, {}), shown),
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class _Used:
    """Rubrics a judge has worked with, how many runs, and the newest of them."""

    rubrics: tuple[int, ...]
    runs: int
    last: int


def _used(judges: Sequence[JudgeVersion]) -> dict[int, _Used]:
    """The newest rubric of each family and language that each judge has worked with."""
    rows = RunJudge.objects.filter(judge_version__in=judges).order_by()
    counted = rows.values("judge_version_id").annotate(runs=Count("run", distinct=True), last=Max("run"))
    pairs = rows.values_list("judge_version_id", "rubric_version_id", "rubric_version__family").distinct()
    newest: dict[int, dict[str, int]] = {}
    for judge, rubric, family in sorted(pairs):
        newest.setdefault(judge, {})[family] = rubric
    return {
        row["judge_version_id"]: _Used(tuple(newest[row["judge_version_id"]].values()), row["runs"], row["last"])
        for row in counted
    }


def _newest_runs(judges: Sequence[JudgeVersion], rows: QuerySet[RunJudge]) -> dict[int, list[int]]:
    """The newest runs of each judge among the rows, the newest first."""
    found: dict[int, list[int]] = {}
    pairs = rows.filter(judge_version__in=judges).order_by("-run_id").values_list("judge_version_id", "run_id")
    for judge, run in pairs.distinct():
        several = found.setdefault(judge, [])
        if len(several) < MOST_LOOKED_AT:
            several.append(run)
    return found


def _newest_versions(rows: Any) -> dict[tuple[str, str], int]:
    found = rows.order_by().values("family", "language").annotate(newest=Max("version"))
    return {(row["family"], row["language"]): row["newest"] for row in found}


def _troubles(judges: Sequence[JudgeVersion]) -> dict[int, str]:
    """How the newest preflight of each judge ended, where that was not well."""
    newest = (
        Preflight.objects.filter(judge_version__in=judges).order_by().values("judge_version").annotate(at=Max("id"))
    )
    rows = Preflight.objects.filter(pk__in=newest.values("at")).exclude(outcome="ok")
    return dict(rows.values_list("judge_version_id", "outcome"))


def _served(judges: Sequence[JudgeVersion], runs: Collection[int]) -> dict[int, dict[int, str]]:
    """The model that answered each judge's preflights, by run, in their order: those of these runs, and the last."""
    good = Preflight.objects.filter(judge_version__in=judges, outcome="ok").exclude(model_returned="").order_by()
    last = good.values("judge_version").annotate(at=Max("id")).values("at")
    rows = good.filter(Q(run__in=runs) | Q(pk__in=last)).order_by("id")
    found: dict[int, dict[int, str]] = {}
    for judge, run, model in rows.values_list("judge_version_id", "run_id", "model_returned"):
        found.setdefault(judge, {})[run] = model
    return found


def _changed(served: Mapping[int, str], measured: int) -> tuple[str, str] | None:
    now = list(served.values())[-1] if served else ""
    before = served.get(measured, now)
    return (before, now) if before != now else None


def _metrics(
    judge: JudgeVersion,
    rubrics: Sequence[RubricVersion],
    newest: Mapping[tuple[str, str], int],
    figures: Mapping[str, Any],
) -> tuple[MetricRecord, ...]:
    said = figures.get("judges", {}).get(str(judge), {})
    found = []
    for row in sorted(rubrics, key=lambda rubric: rubric.family):
        latest = newest.get((row.family, row.language), 0)
        for spec in family_for(row.rubric).given:
            measured = said.get(spec.name)
            agreed = JudgeTrust.from_dict(measured["trust"]) if measured else None
            bias = measured["bias"] if measured else None
            found.append(MetricRecord(spec, row, latest if latest > row.version else None, agreed, bias))
    return tuple(found)
