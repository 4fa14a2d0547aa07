"""Agreement over time: the runs over the versions of one question set, with the judge and rubric of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from evaluation.core.registry import Bilingual, Scale, ScaleKind
from evaluation.judging.calls import Outcome
from evaluation.models import Preflight, Run
from review.models import Rating
from review.results.run_agreement import By, agreement_if_kept, kept_agreement

MOST_RUNS = 12  # the newest ones; more are no longer read in one look


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


def headline_statistic(scale: Scale) -> str:
    """The one figure that a line over time shows: quadratic kappa of levels and yes/no, kappa of classes, Pearson's
    correlation of continuous values."""
    if scale.kind is ScaleKind.CLASS:
        return "cohen_kappa"
    return "cohen_kappa_quadratic" if scale.levels else "pearson"


def trends_of(run: Run) -> dict[str, Trend]:
    """Metric -> the agreement of the newest runs with ratings over this run's question set, whatever its version; where
    only one run has ratings, that of its answers by the time of rating.

    Figures are those kept; where a run has none yet they are computed without intervals, and kept.
    """
    points: dict[str, list[TrendPoint]] = {}
    titles: dict[str, Bilingual] = {}
    statistics: dict[str, str] = {}
    runs = _rated_runs(run)
    served = _served_models(runs)
    for one in runs:
        found = (agreement_if_kept(one, by=By.CATEGORY) if len(runs) > 1 else None) or kept_agreement(
            one, resamples=0, by=By.NOTHING if len(runs) > 1 else By.PERIOD
        )
        for metric, author, figures in _own_judges(found):
            titles.setdefault(metric, Bilingual(**found["experts"][metric]["title"]))
            name = statistics.setdefault(metric, headline_statistic(Scale.parse(figures["scale"])))
            points.setdefault(metric, []).extend(_points(one, author, figures, name, served))
    return {metric: Trend(metric, titles[metric], statistics[metric], tuple(of)) for metric, of in points.items()}


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
