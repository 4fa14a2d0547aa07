"""The headline of each of several runs, for lists: made from the full report once and kept until anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Max

from evaluation.models import Run, Score
from review.models import Override, Rating
from review.reports.report import Report, make_report

DAY = 24 * 3600


@dataclass(frozen=True, slots=True)
class Headline:
    """The most trustworthy overall figure there is, and which of the three (``kind``) it is: ``value`` with its
    interval, or ``withheld`` with a reason code. ``kappa`` is the lowest quadratic kappa of the primary judges'
    metrics, ``None`` without ratings; ``rated`` how many answers experts have rated of ``answers``. ``label`` is
    ``overall_score`` unless the figure is of some parts only."""

    kind: str
    value: float | None
    low: float | None
    high: float | None
    withheld: str
    label: str
    weight: float
    kappa: float | None
    rated: int
    answers: int


def headlines(runs: Sequence[Run]) -> dict[int, Headline]:
    """The headlines of the runs that have ended, by primary key; three queries where nothing has changed."""
    ended = [run for run in runs if run.state in Run.ENDED]
    prints = _fingerprints(ended)
    kept = cache.get_many(prints.values())
    found: dict[int, Headline] = {}
    for run in ended:
        key = prints[run.pk]
        if key not in kept:
            kept[key] = headline(make_report(run))
            cache.set(key, kept[key], DAY)
        found[run.pk] = kept[key]
    return found


def headline(report: Report) -> Headline:
    """Corrected where it is offered, else reviewed where anything was rated, else judge-only."""
    overall = report.overall
    kind, figure = "judge", overall.judge_only
    if overall.part_only is not None:
        kind, figure = "plain-mark", overall.part_only
    elif overall.corrected.value is not None:
        kind, figure = "corrected", overall.corrected
    elif overall.reviewed_answers:
        kind, figure = "expert", overall.reviewed
    kappas = list(_kappas(report))
    return Headline(
        kind=kind,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        withheld=figure.withheld,
        label=str(overall.label),
        weight=overall.weight,
        kappa=min(kappas) if kappas else None,
        rated=overall.reviewed_answers,
        answers=overall.answers,
    )


def _kappas(report: Report) -> Iterable[float]:
    authors = {f"{one.judge.name}@{one.judge.version}" for one in report.provenance.judges if one.primary}
    for author, metrics in report.agreement.get("judges", {}).items():
        for found in metrics.values() if author in authors else ():
            if found["cohen_kappa_quadratic"] is not None:
                yield found["cohen_kappa_quadratic"]


def _fingerprints(runs: Sequence[Run]) -> dict[int, str]:
    """What a headline depends on: the run's state and the newest score, rating and override it can see. Rows are only
    ever added, so the newest one tells whether anything is new."""
    sets = {run.answer_set_id for run in runs}
    newest = Max("id")
    scores = dict(Score.objects.filter(run__in=runs).order_by().values_list("run").annotate(newest))
    rated = Rating.objects.filter(answer__answer_set__in=sets).order_by()
    ratings = dict(rated.values_list("answer__answer_set").annotate(newest))
    decided = Override.objects.filter(answer__answer_set__in=sets).order_by()
    overrides = dict(decided.values_list("answer__answer_set").annotate(newest))
    return {
        run.pk: f"headline:{run.pk}:{run.state}:{scores.get(run.pk, 0)}:{ratings.get(run.answer_set_id, 0)}"
        f":{overrides.get(run.answer_set_id, 0)}"
        for run in runs
    }
