"""Agreement over the runs of one question set, and records of judges with their agreement and price."""

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
from review.agreement.run_agreement import Breakdown, cached_agreement, cached_agreements
from review.models import Rating
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.trust import JudgeTrust

# The newest runs; more are unreadable in one chart.
MAX_RUNS = 12
# Runs with more scores are not computed within a request.
MAX_SCORES = 5_000


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Agreement of a run's primary judge on one metric.

    ``method`` describes how its values are computed; ``served_model`` is the model that answered the preflight, empty
    if unknown. ``value`` is ``None`` where undefined; ``low`` and ``high`` are ``None`` if the interval is not computed
    or does not exist. ``period`` is set if the points are rating periods within one run."""

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
    served_model: str = ""


@dataclass(frozen=True, slots=True)
class Trend:
    """Points of one metric, oldest first; ``statistic`` is the name of the figure."""

    metric: str
    title: Bilingual
    statistic: str
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True, slots=True)
class Trends:
    """Trends by metric name. ``skipped_runs`` have too many scores to compute in a request and appear once a worker
    did."""

    by_metric: Mapping[str, Trend]
    skipped_runs: tuple[Run, ...]


def load_trends(run: Run) -> Trends:
    """Load the agreement of the newest rated runs over this run's question set, in any version.

    With only one rated run, return its agreement by rating period. Cached figures are used; small runs without any are
    computed without intervals and cached."""
    points: dict[str, list[TrendPoint]] = {}
    titles: dict[str, Bilingual] = {}
    statistics: dict[str, str] = {}
    runs = _rated_runs(run)
    served = _served_models(runs)
    has_several = len(runs) > 1
    cached, skipped = cached_agreements(runs) if has_several else {}, []
    for rated_run in runs:
        agreement = cached.get(rated_run.pk)
        if (
            agreement is None
            and has_several
            and len(Score.objects.filter(run=rated_run)[: MAX_SCORES + 1].values_list("pk")) > MAX_SCORES
        ):
            skipped.append(rated_run)
            continue
        agreement = agreement or cached_agreement(
            rated_run, resamples=0, by=Breakdown.NONE if has_several else Breakdown.PERIOD
        )
        for metric, author, figures in _primary_judges(agreement):
            titles.setdefault(metric, Bilingual(**agreement["experts"][metric]["title"]))
            name = statistics.setdefault(metric, headline_statistic(Scale.parse(figures["scale"])))
            points.setdefault(metric, []).extend(_points(rated_run, author, figures, name, served))
    by_metric = {
        metric: Trend(metric, titles[metric], statistics[metric], tuple(metric_points))
        for metric, metric_points in points.items()
    }
    return Trends(by_metric, tuple(skipped))


def _rated_runs(run: Run) -> list[Run]:
    rated = Rating.objects.filter(answer__answer_set=OuterRef("answer_set"))
    runs = Run.objects.select_related(Run.NAME_RELATION).filter(
        Exists(rated),
        project_id=run.project_id,
        answer_set__question_set__name=run.answer_set.question_set.name,
    )
    return list(runs.order_by("-created_at", "-id")[:MAX_RUNS])[::-1]


def _primary_judges(agreement: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for author, metrics in agreement["judges"].items():
        for metric, figures in metrics.items():
            if figures["primary"]:
                yield metric, author, figures


def _served_models(runs: Sequence[Run]) -> dict[tuple[int, str], str]:
    """Return the model that answered each judge's preflight, by run and judge. One query."""
    preflights = Preflight.objects.filter(run__in=runs, outcome=Outcome.OK).select_related("judge_version")
    return {(preflight.run_id, str(preflight.judge_version)): preflight.model_returned for preflight in preflights}


def _points(
    run: Run, author: str, figures: Mapping[str, Any], name: str, served: Mapping[tuple[int, str], str]
) -> Iterator[TrendPoint]:
    by_period: Mapping[str, Mapping[str, Any]] = figures.get("by_period", {"": figures})
    for period, period_figures in by_period.items():
        low, high = period_figures["intervals"].get(name, (None, None))
        labels, model = (author, figures["rubric"], figures["method"]), served.get((run.pk, author), "")
        yield TrendPoint(
            run.pk,
            str(run),
            run.created_at,
            *labels,
            period_figures["n"],
            period_figures[name],
            low,
            high,
            period,
            model,
        )


# The newest rated runs of each judge.
MAX_RATED_RUNS = 5


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """A metric that a judge has scored by a rubric version.

    ``newer_version`` is the number of the family's newest shared version, ``None`` if this is it. ``trust`` is ``None``
    without cached agreement; ``bias`` is the judge's mean difference from the experts."""

    spec: MetricSpec
    rubric: RubricVersion
    newer_version: int | None
    trust: JudgeTrust | None
    bias: float | None = None


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """Record of a judge version.

    ``measured_run`` is its newest run with cached agreement (``has_agreement``), otherwise its newest run with ratings.
    ``newer_version`` is the number of the newest version of its name, ``None`` if this is it. ``preflight_failure`` is
    the outcome of its last preflight, empty if that succeeded or there was none. ``model_change`` holds the models that
    answered before the measured run and last, if they differ."""

    judge: JudgeVersion
    runs: int
    last: Run | None
    measured_run: Run | None
    has_agreement: bool
    metrics: tuple[MetricRecord, ...]
    price: Price | None
    newer_version: int | None
    preflight_failure: str
    model_change: tuple[str, str] | None = None


def judge_records(judges: Sequence[JudgeVersion]) -> list[JudgeRecord]:
    """Return the records of judges in order. Agreement is read from the cache; the number of queries is fixed."""
    usages = _judge_usages(judges)
    rubrics = RubricVersion.objects.in_bulk({pk for usage in usages.values() for pk in usage.rubrics})
    rated = Exists(Rating.objects.filter(answer__answer_set=OuterRef("run__answer_set")))
    runs_by_judge = _newest_runs(judges, RunJudge.objects.filter(rated))
    needed_runs = {pk for run_ids in runs_by_judge.values() for pk in run_ids} | {
        usage.last for usage in usages.values()
    }
    runs = Run.objects.select_related("answer_set__question_set", Run.NAME_RELATION).in_bulk(needed_runs)
    agreements = cached_agreements(
        [runs[pk] for pk in sorted({pk for run_ids in runs_by_judge.values() for pk in run_ids})]
    )
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
    failures = _preflight_failures(judges)
    served = _served_by_run(judges, {pk for run_ids in runs_by_judge.values() for pk in run_ids})
    table, today = price_table(), datetime.now(UTC).date()
    records = []
    for judge in judges:
        usage = usages.get(judge.pk, _JudgeUsage((), 0, 0))
        rated_runs = runs_by_judge.get(judge.pk, [])
        run_id = next((pk for pk in rated_runs if pk in agreements), next(iter(rated_runs), 0))
        figures = agreements.get(run_id, {})
        latest_version = newest[judge.project_id, judge.name]
        records.append(
            JudgeRecord(
                judge=judge,
                runs=usage.runs,
                last=runs.get(usage.last),
                measured_run=runs.get(run_id),
                has_agreement=bool(figures),
                metrics=_metrics(judge, [rubrics[pk] for pk in usage.rubrics], newest_rubrics, figures),
                price=table.price(judge.model, today),
                newer_version=latest_version if latest_version != judge.version else None,
                preflight_failure=failures.get(judge.pk, ""),
                model_change=_model_change(served.get(judge.pk, {}), run_id),
            )
        )
    return records


@dataclass(frozen=True, slots=True)
class _JudgeUsage:
    """Rubrics that a judge has used, its number of runs, and the newest of them."""

    rubrics: tuple[int, ...]
    runs: int
    last: int


def _judge_usages(judges: Sequence[JudgeVersion]) -> dict[int, _JudgeUsage]:
    """Return each judge's usage, with its newest rubric of each family."""
    rows = RunJudge.objects.filter(judge_version__in=judges).order_by()
    counts = rows.values("judge_version_id").annotate(runs=Count("run", distinct=True), last=Max("run"))
    pairs = rows.values_list("judge_version_id", "rubric_version_id", "rubric_version__family").distinct()
    newest: dict[int, dict[str, int]] = {}
    for judge, rubric, family in sorted(pairs):
        newest.setdefault(judge, {})[family] = rubric
    return {
        row["judge_version_id"]: _JudgeUsage(tuple(newest[row["judge_version_id"]].values()), row["runs"], row["last"])
        for row in counts
    }


def _newest_runs(judges: Sequence[JudgeVersion], rows: QuerySet[RunJudge]) -> dict[int, list[int]]:
    """Return the newest runs of each judge among the rows, newest first."""
    by_judge: dict[int, list[int]] = {}
    pairs = rows.filter(judge_version__in=judges).order_by("-run_id").values_list("judge_version_id", "run_id")
    for judge, run in pairs.distinct():
        run_ids = by_judge.setdefault(judge, [])
        if len(run_ids) < MAX_RATED_RUNS:
            run_ids.append(run)
    return by_judge


def _newest_versions(rows: Any) -> dict[tuple[str, str], int]:
    newest = rows.order_by().values("family", "language").annotate(newest=Max("version"))
    return {(row["family"], row["language"]): row["newest"] for row in newest}


def _preflight_failures(judges: Sequence[JudgeVersion]) -> dict[int, str]:
    """Return the outcome of each judge's newest preflight, if it failed."""
    newest = (
        Preflight.objects.filter(judge_version__in=judges).order_by().values("judge_version").annotate(at=Max("id"))
    )
    rows = Preflight.objects.filter(pk__in=newest.values("at")).exclude(outcome="ok")
    return dict(rows.values_list("judge_version_id", "outcome"))


def _served_by_run(judges: Sequence[JudgeVersion], runs: Collection[int]) -> dict[int, dict[int, str]]:
    """Return the model that answered each judge's preflights by run, in order: those of these runs, and the last
    one."""
    preflights = Preflight.objects.filter(judge_version__in=judges, outcome="ok").exclude(model_returned="").order_by()
    last = preflights.values("judge_version").annotate(at=Max("id")).values("at")
    rows = preflights.filter(Q(run__in=runs) | Q(pk__in=last)).order_by("id")
    by_judge: dict[int, dict[int, str]] = {}
    for judge, run, model in rows.values_list("judge_version_id", "run_id", "model_returned"):
        by_judge.setdefault(judge, {})[run] = model
    return by_judge


def _model_change(served: Mapping[int, str], measured: int) -> tuple[str, str] | None:
    now = list(served.values())[-1] if served else ""
    before = served.get(measured, now)
    return (before, now) if before != now else None


def _metrics(
    judge: JudgeVersion,
    rubrics: Sequence[RubricVersion],
    newest: Mapping[tuple[str, str], int],
    figures: Mapping[str, Any],
) -> tuple[MetricRecord, ...]:
    by_metric = figures.get("judges", {}).get(str(judge), {})
    records = []
    for row in sorted(rubrics, key=lambda rubric: rubric.family):
        latest_version = newest.get((row.family, row.language), 0)
        for spec in family_for(row.rubric).produced_metrics:
            metric_figures = by_metric.get(spec.name)
            trust = JudgeTrust.from_dict(metric_figures["trust"]) if metric_figures else None
            bias = metric_figures["bias"] if metric_figures else None
            records.append(
                MetricRecord(spec, row, latest_version if latest_version > row.version else None, trust, bias)
            )
    return tuple(records)
