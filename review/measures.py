"""Agreement of a run: every judge against the experts, and the experts among themselves (statistics.md 4)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.registry import Bilingual
from evaluation.runs.models import Run
from evaluation.samples import Status
from evaluation.scales import Scale, ScaleKind
from evaluation.scores.models import MetricDefinition
from review.agreement.bootstrap import Resampling
from review.agreement.consensus import consensus
from review.agreement.experts import ExpertAgreement, compare_experts
from review.agreement.pair import PairAgreement, compare
from review.agreement.rating import Rating
from review.figures.answers import RunAnswer
from review.figures.experts import ExpertRating, agreement_ratings
from review.figures.judged import Judged, Key
from review.figures.said import Said, said_of, samples_behind
from review.figures.sampling import Samples
from review.figures.scorers import Scorer
from review.figures.titles import title_of
from review.figures.weights import Weighting, weigh

OFF_SCALE = "scale"  # the reason code of a score that a judge gave off the metric's scale


@dataclass(frozen=True, slots=True)
class JudgeMeasure:
    """One scorer against the experts on one metric. ``author`` is ``name@version``, an imported judge's label, or
    ``rules``. ``primary`` marks the judge whose values are the run's, ``baseline`` the offline baseline.
    ``by_category`` holds the same comparison within each category, where asked for. ``sampling`` and ``left_out`` as
    in :class:`ExpertsMeasure`."""

    author: str
    primary: bool
    baseline: bool
    imported: bool
    metric: str
    title: Bilingual
    agreement: PairAgreement
    by_category: Mapping[str, PairAgreement]
    sampling: str
    left_out: int


@dataclass(frozen=True, slots=True)
class ExpertsMeasure:
    """The experts among themselves on one metric. ``sampling``: ``weighted`` (a draw with unequal probabilities),
    ``equal`` or ``unknown`` (hand-picked or imported without a probability); ``left_out`` counts rated answers of
    unknown sampling that are not mixed with the others."""

    metric: str
    title: Bilingual
    agreement: ExpertAgreement
    sampling: str
    left_out: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """All agreement figures of a run. ``examples``: some of the ratings were made for show."""

    judges: tuple[JudgeMeasure, ...]
    experts: tuple[ExpertsMeasure, ...]
    examples: bool = False

    def to_dict(self) -> dict[str, Any]:
        """``{"judges": {author: {metric: {...}}}, "experts": {metric: {...}}}`` as the contract has it."""
        judges: dict[str, dict[str, Any]] = {}
        for one in self.judges:
            found = one.agreement.to_dict() | {"sampling": one.sampling, "left_out": one.left_out}
            if one.by_category:
                found["by_category"] = {name: pair.to_dict() for name, pair in one.by_category.items()}
            judges.setdefault(one.author, {})[one.metric] = found
        experts = {
            one.metric: {**one.agreement.to_dict(), "sampling": one.sampling, "left_out": one.left_out}
            for one in self.experts
        }
        return {"judges": judges, "experts": experts}


@dataclass(frozen=True, slots=True)
class _Rated:
    """The experts' blind first ratings of one metric, on the answers that are used together."""

    metric: MetricDefinition
    name: str
    scale: Scale
    ratings: dict[int, list[ExpertRating]]
    weighting: Weighting
    answers: dict[int, RunAnswer]

    def means(self) -> dict[int, float | str | None]:
        """Answer -> the experts' mean (classes: majority, ``None`` where tied)."""
        return {
            answer: consensus([v for r in self.ratings[answer] if (v := r.answer) is not None], self.scale)
            for answer in self.weighting.answers
        }

    def resampling(self, asked: Resampling | None) -> Resampling | None:
        """The resampling with the groups and strata of these answers."""
        if asked is None:
            return None
        groups = [self.answers[answer].group for answer in self.weighting.answers]
        return dataclasses.replace(asked, groups=groups, strata=self.weighting.strata)


def agreement_of(run: Run, *, resampling: Resampling | None = None, by_category: bool = False) -> Agreement:
    """All agreement figures of the run's answers, in a fixed number of queries (nine).

    ``resampling`` gives intervals; its groups and strata are the run's and not read. Without it nothing is slow.
    """
    said = said_of(run)
    return agreement_from(said, samples_behind(run, said), resampling=resampling, by_category=by_category)


def agreement_from(
    said: Said, samples: Samples, *, resampling: Resampling | None = None, by_category: bool = False
) -> Agreement:
    """All agreement figures of everything that was said."""
    by_key = agreement_ratings(said.ratings)
    judges: list[JudgeMeasure] = []
    experts: list[ExpertsMeasure] = []
    for pk in sorted({metric for _, metric in by_key}, key=lambda pk: said.names[pk]):
        ratings = {answer: by_key[answer, pk] for answer in said.answers if (answer, pk) in by_key}
        weighting = weigh(ratings, samples.places(pk, said.ratings))
        metric = said.metrics[pk]
        rated = _Rated(metric, said.names[pk], metric.read_scale(), ratings, weighting, said.answers)
        scorers = [one for one in said.scorers if any(metric_id == pk for _, metric_id in one.said)]
        judges += [_judge_measure(rated, one, resampling, by_category) for one in scorers]
        experts.append(_experts_measure(rated, scorers, resampling))
    return Agreement(tuple(judges), tuple(experts), examples=any(row.example for row in said.ratings))


def comparable(said: Judged | None, scale: Scale) -> float | str | None:
    """What a judge said as the comparison reads it: a value off the scale stays off the scale, so that it is counted
    as such; everything else without a value is ``None``."""
    if said is None:
        return None
    if said.status is Status.FAILED and said.reason.partition(":")[0] == OFF_SCALE:
        return "" if scale.kind is ScaleKind.CLASS else math.inf
    return said.answer


def _judge_measure(rated: _Rated, scorer: Scorer, resampling: Resampling | None, by_category: bool) -> JudgeMeasure:
    means = rated.means()
    chosen = rated.weighting.answers
    said = [comparable(scorer.said.get((answer, rated.metric.pk)), rated.scale) for answer in chosen]
    weights = rated.weighting.weights
    whole = compare(
        said, [means[answer] for answer in chosen], rated.scale, weights, resampling=rated.resampling(resampling)
    )
    return JudgeMeasure(
        author=scorer.author,
        primary=scorer.primary,
        baseline=scorer.baseline,
        imported=scorer.imported,
        metric=rated.name,
        title=title_of(rated.metric),
        agreement=whole,
        by_category=_within(rated, means, said) if by_category else {},
        sampling=rated.weighting.sampling,
        left_out=rated.weighting.left_out,
    )


def _within(
    rated: _Rated, means: Mapping[int, float | str | None], said: Sequence[float | str | None]
) -> dict[str, PairAgreement]:
    """The comparison within each category, without intervals."""
    weights = rated.weighting.weights
    places: dict[str, list[int]] = {}
    for position, answer in enumerate(rated.weighting.answers):
        places.setdefault(rated.answers[answer].category, []).append(position)
    return {
        category: compare(
            [said[at] for at in positions],
            [means[rated.weighting.answers[at]] for at in positions],
            rated.scale,
            None if weights is None else [weights[at] for at in positions],
        )
        for category, positions in sorted(places.items())
    }


def _experts_measure(rated: _Rated, scorers: Sequence[Scorer], resampling: Resampling | None) -> ExpertsMeasure:
    """The experts among themselves; beside them the primary judge, else the only one there is."""
    beside = [one for one in scorers if one.primary] or (list(scorers) if len(scorers) == 1 else [])
    chosen, weights = rated.weighting.answers, rated.weighting.weights
    ratings = [
        Rating(answer, rating.rater, value)
        for answer in chosen
        for rating in rated.ratings[answer]
        if (value := rating.answer) is not None
    ]
    found = compare_experts(
        ratings,
        rated.scale,
        judge=_values(beside[0].said, rated) if beside else None,
        groups={answer: rated.answers[answer].group for answer in chosen},
        weights=None if weights is None else dict(zip(chosen, weights, strict=True)),
        resampling=resampling,
    )
    return ExpertsMeasure(rated.name, title_of(rated.metric), found, rated.weighting.sampling, rated.weighting.left_out)


def _values(said: Mapping[Key, Judged], rated: _Rated) -> dict[Any, float | str]:
    return {
        answer: value
        for answer in rated.weighting.answers
        if (one := said.get((answer, rated.metric.pk))) is not None and (value := one.answer) is not None
    }
