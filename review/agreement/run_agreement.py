"""Agreement of a run: every judge against the experts, and the experts among themselves (``docs/agreement.md``).

Bootstrap intervals are cached by their inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeGuard

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.core.metric_specs import Bilingual, Direction
from evaluation.core.scales import Scale
from evaluation.judging.formulas import LengthBias, length_bias
from evaluation.models import Run, Score
from evaluation.worker.database import retry_on_db_error
from review import models
from review.agreement.variation import VariationMeasure, variation_measures
from review.evidence.answers import answer_lengths
from review.evidence.effective import RunEvidence, load_evidence, run_samples
from review.evidence.experts import Anchoring, anchoring, anchoring_json, is_standing
from review.evidence.sampling import RatedMetric, Samples, weight_answers
from review.evidence.scorers import RULES, JudgedValue, Scorer, metric_title
from review.evidence.seals import label_form
from review.models import CachedAgreement, EventRuling, FrameMember
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import STATISTIC_NAMES
from review.statistics.agreement.ceiling import AlternativeAnnotatorTest, Ceiling, alternative_annotator_test, ceiling
from review.statistics.agreement.experts import ExpertAgreement, compare_experts, item_resampler
from review.statistics.agreement.pair import (
    ConstantGuess,
    CurvePoint,
    PairAgreement,
    compare,
    reliability_curve,
    scatter_points,
)
from review.statistics.agreement.statistic import Rating, group_by_item
from review.statistics.agreement.trust import MIN_ANSWERS, JudgeTrust, decisive_statistics, judge_trust


class Breakdown(StrEnum):
    """Split of the answers, in addition to the whole."""

    NONE = ""
    CATEGORY = "category"
    # Days, weeks or months of the rating.
    PERIOD = "period"


@dataclass(frozen=True, slots=True)
class AgreementMeasure:
    """Agreement on one metric.

    ``sampling`` is ``weighted`` (a draw with unequal probabilities), ``equal`` or ``unknown`` (hand-picked or imported
    without a probability). ``left_out`` counts rated answers of unknown sampling that are not mixed with the others."""

    metric: str
    title: Bilingual
    scale: Scale
    sampling: str
    left_out: int


@dataclass(frozen=True, slots=True)
class JudgeMeasure(AgreementMeasure):
    """Scorer against the experts on one metric.

    ``parts`` holds the comparison within each category or period, if requested. ``guess`` is the best constant guess;
    ``curve`` and ``scatter`` are the data of plots. ``ceiling`` and ``alternative_annotator`` exist if answers have
    ratings of several experts. ``by_length`` correlates judge minus experts with answer length.

    ``built_on`` counts rated answers that are left out because the scorer's prompt was developed on their labels.
    ``sealed`` counts those whose ratings the reader may not see. ``trust`` is the verdict on a judge, ``None`` for
    rules."""

    scorer: Scorer
    agreement: PairAgreement
    parts: Mapping[str, PairAgreement]
    guess: ConstantGuess | None
    curve: tuple[CurvePoint, ...]
    scatter: tuple[tuple[float, float, int], ...]
    ceiling: Ceiling | None
    alternative_annotator: AlternativeAnnotatorTest | None
    by_length: LengthBias | None = None
    built_on: int = 0
    sealed: int = 0
    trust: JudgeTrust | None = None

    @property
    def author(self) -> str:
        return self.scorer.author

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the agreement with scorer, sampling, verdict, constant guess, ceiling and plot data."""
        scorer, test, guess, length = self.scorer, self.alternative_annotator, self.guess, self.by_length
        ceiling = self.ceiling.to_dict() if self.ceiling is not None else None
        return self.agreement.to_dict() | {
            "rubric": scorer.rubric,
            "method": scorer.method,
            "primary": scorer.primary,
            "baseline": scorer.baseline,
            "imported": scorer.imported,
            "scale": str(self.scale),
            "sampling": self.sampling,
            "left_out": self.left_out,
            **({"built_on": self.built_on} if self.built_on else {}),
            **({"sealed": self.sealed} if self.sealed else {}),
            "trust": None if self.trust is None else self.trust.to_dict(),
            "warnings": list(self.agreement.warnings),
            "bias_by_length": None if length is None else {"rho": length.rho, "low": length.low, "high": length.high},
            "constant_guess": None if guess is None else _guess_dict(guess),
            "ceiling": None if ceiling is None else {side: ceiling[side] for side in ("expert", "judge")},
            "alternative_annotator": None if test is None else test.to_dict(),
            "reliability_curve": [point.to_dict() for point in self.curve],
            "places": [list(place) for place in self.scatter],
        }


@dataclass(frozen=True, slots=True)
class ExpertsMeasure(AgreementMeasure):
    """Agreement of the experts among themselves on one metric."""

    agreement: ExpertAgreement
    parts: Mapping[str, ExpertAgreement]
    sealed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the agreement with the metric's title and scale and the sampling."""
        return self.agreement.to_dict() | {
            "title": {"en": self.title.en, "ko": self.title.ko},
            "scale": str(self.scale),
            "sampling": self.sampling,
            "left_out": self.left_out,
            **({"sealed": self.sealed} if self.sealed else {}),
            "warnings": list(self.agreement.warnings),
        }


@dataclass(frozen=True, slots=True)
class RunAgreement:
    """Agreement figures of a run.

    ``examples``: some of the ratings come from an example queue. ``by`` is the split of ``parts`` in the measures.
    ``variation`` explains why values vary, if requested. ``anchoring`` has name, title and figures of each metric whose
    ratings were reviewed after the reveal of the judge."""

    judges: tuple[JudgeMeasure, ...]
    experts: tuple[ExpertsMeasure, ...]
    examples: bool = False
    by: Breakdown = Breakdown.NONE
    variation: tuple[VariationMeasure, ...] | None = None
    anchoring: tuple[tuple[str, Bilingual, Anchoring], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON form ``{"judges": {author: {metric: {...}}}, "experts": {metric: {...}}}``.

        It also has ``"variance": {metric: {...}}`` if requested and ``"anchoring": {metric: {...}}`` if there is any.
        """
        judges: dict[str, dict[str, Any]] = {}
        experts: dict[str, dict[str, Any]] = {}
        for judge in self.judges:
            judges.setdefault(judge.author, {})[judge.metric] = judge.to_dict() | self._parts_dict(judge.parts)
        for measure in self.experts:
            experts[measure.metric] = measure.to_dict() | self._parts_dict(measure.parts)
        figures: dict[str, Any] = {"judges": judges, "experts": experts}
        if self.variation is not None:
            figures["variance"] = {measure.metric: measure.to_dict() for measure in self.variation}
        if self.anchoring:
            figures["anchoring"] = {name: anchoring_json(title, measure) for name, title, measure in self.anchoring}
        return figures

    def _parts_dict(self, parts: Mapping[str, PairAgreement] | Mapping[str, ExpertAgreement]) -> dict[str, Any]:
        return {f"by_{self.by}": {name: part.to_dict() for name, part in parts.items()}} if self.by else {}


def compute_agreement(
    run: Run, *, resampling: Resampling | None = None, by: Breakdown = Breakdown.NONE
) -> RunAgreement:
    """Compute the agreement figures of the run's answers and their variance, in a fixed number of queries.

    ``resampling`` adds intervals, which is slow; the run sets its groups and strata."""
    evidence = load_evidence(run)
    agreement = agreement_from_evidence(
        evidence, run_samples(run, evidence), answer_lengths(run), resampling=resampling, by=by
    )
    return replace(agreement, variation=variation_measures(evidence))


def agreement_from_evidence(
    evidence: RunEvidence,
    samples: Samples,
    lengths: Mapping[int, int],
    *,
    resampling: Resampling | None = None,
    by: Breakdown = Breakdown.NONE,
) -> RunAgreement:
    """Agreement figures of the evidence; ``lengths`` are those of :func:`answer_lengths`."""
    judges: list[JudgeMeasure] = []
    experts: list[ExpertsMeasure] = []
    for pk in sorted(evidence.blind_by_metric, key=lambda pk: evidence.names[pk]):
        blind = evidence.blind_by_metric[pk]
        ratings = {answer: blind[answer] for answer in evidence.answers if answer in blind}
        weighting = weight_answers(ratings, samples.rounds(pk, evidence.ratings_by_metric[pk]))
        metric = evidence.metrics[pk]
        rated = RatedMetric(metric, evidence.names[pk], metric.read_scale(), ratings, weighting, evidence.answers)
        parts = _split_ratings(rated, by)
        scorers = [scorer for scorer in evidence.scorers if pk in scorer.values]
        sealed = len({row.answer_id for row in evidence.withheld if row.metric_id == pk})
        expert_measure = _experts_measure(rated, scorers, resampling, parts)
        for scorer in scorers:
            unseen_ratings = rated.without({answer for answer, metric_id in scorer.prompt_labels if metric_id == pk})
            measure = _judge_measure(
                unseen_ratings,
                scorer,
                resampling,
                parts if unseen_ratings is rated else _split_ratings(unseen_ratings, by),
            )
            left_out = len(weighting.answers) - len(unseen_ratings.weighting.answers)
            measure = replace(
                measure, by_length=_by_length(unseen_ratings, scorer, lengths), built_on=left_out, sealed=sealed
            )
            trust = (
                None
                if scorer.author == RULES
                else _trust(measure, expert_measure, unseen_ratings, has_intervals=resampling is not None)
            )
            judges.append(replace(measure, trust=trust))
        experts.append(replace(expert_measure, sealed=sealed))
    anchoring_by_metric = anchoring(evidence.ratings, evidence.scored)
    return RunAgreement(
        tuple(judges),
        tuple(experts),
        any(row.example for row in evidence.ratings),
        by,
        anchoring=tuple(
            (evidence.names[pk], metric_title(evidence.metrics[pk]), anchoring)
            for pk, anchoring in anchoring_by_metric.items()
        ),
    )


def _split_ratings(rated: RatedMetric, by: Breakdown) -> dict[str, RatedMetric]:
    if by is Breakdown.CATEGORY:
        return rated.split_by_category()
    return rated.split_by_period() if by is Breakdown.PERIOD else {}


def _judge_measure(
    rated: RatedMetric,
    scorer: Scorer,
    resampling: Resampling | None,
    parts: Mapping[str, RatedMetric],
) -> JudgeMeasure:
    judge_values, weights = rated.scorer_values(scorer.values), rated.weighting.weights
    single_ratings = rated.single_ratings
    has_overlap = len({rating.item for rating in single_ratings}) < len(single_ratings)
    agreement = _pair_agreement(rated, scorer, resampling)
    return JudgeMeasure(
        *_measure_fields(rated),
        scorer=scorer,
        agreement=agreement,
        parts={
            name: _pair_agreement(part, scorer, resampling) if len(parts) > 1 else agreement
            for name, part in parts.items()
        },
        guess=rated.guess,
        curve=reliability_curve(judge_values, rated.means, rated.scale, weights, rated.groups),
        scatter=scatter_points(judge_values, rated.means, rated.scale),
        ceiling=_ceiling(rated, scorer, single_ratings, resampling) if has_overlap else None,
        alternative_annotator=_alternative_annotator(rated, scorer, single_ratings) if has_overlap else None,
    )


def _trust(
    measure: JudgeMeasure, expert_measure: ExpertsMeasure, rated: RatedMetric, *, has_intervals: bool
) -> JudgeTrust:
    """Verdict on a judge. Compute the deciding intervals here unless the measure has them.

    Few answers need no intervals, and those of many questions are too narrow to change the verdict."""
    pair = measure.agreement
    if not has_intervals and pair.n >= MIN_ANSWERS and len(set(rated.groups)) < MANY_GROUPS:
        pair = _pair_agreement(rated, measure.scorer, Resampling(RESAMPLES), decisive_statistics(rated.scale))
    lower_better = rated.metric.direction == Direction.LOWER
    return judge_trust(
        pair, expert_measure.agreement, rated.scale, built_on=measure.built_on, lower_better=lower_better
    )


def _by_length(rated: RatedMetric, scorer: Scorer, lengths: Mapping[int, int]) -> LengthBias | None:
    """Correlation of judge minus experts with the length of the answer; ``None`` for classes."""
    rows = zip(rated.weighting.answers, rated.scorer_values(scorer.values), rated.means, strict=True)
    differences = [
        (judge_value - expert_mean, lengths[answer_id])
        for answer_id, judge_value, expert_mean in rows
        if _is_number(judge_value) and _is_number(expert_mean)
    ]
    return length_bias([difference for difference, _ in differences], [size for _, size in differences])


def _is_number(value: float | str | None) -> TypeGuard[float]:
    return isinstance(value, float | int) and math.isfinite(value)


def _measure_fields(rated: RatedMetric) -> tuple[str, Bilingual, Scale, str, int]:
    """Fields of :class:`AgreementMeasure`."""
    return rated.name, metric_title(rated.metric), rated.scale, rated.weighting.sampling, rated.weighting.left_out


def _pair_agreement(
    rated: RatedMetric,
    scorer: Scorer,
    resampling: Resampling | None,
    interval_statistics: Collection[str] = STATISTIC_NAMES,
) -> PairAgreement:
    judge_values, weights = rated.scorer_values(scorer.values), rated.weighting.weights
    return compare(
        judge_values,
        rated.means,
        rated.scale,
        weights,
        resampling=rated.resampling(resampling),
        only=interval_statistics,
    )


def _ceiling(
    rated: RatedMetric, scorer: Scorer, single_ratings: Sequence[Rating], resampling: Resampling | None
) -> Ceiling:
    items, values = group_by_item(single_ratings), rated.value_by_answer(scorer.values)
    drawn = item_resampler(items, _groups(rated), resampling) if resampling is not None else None
    return ceiling(items, rated.scale, values, weights=_weights(rated), resampling=resampling, resampler=drawn)


def _alternative_annotator(
    rated: RatedMetric, scorer: Scorer, single_ratings: Sequence[Rating]
) -> AlternativeAnnotatorTest:
    return alternative_annotator_test(
        single_ratings, rated.value_by_answer(scorer.values), rated.scale, groups=_groups(rated)
    )


def _groups(rated: RatedMetric) -> dict[Any, str]:
    return dict(zip(rated.weighting.answers, rated.groups, strict=True))


def _weights(rated: RatedMetric) -> dict[Any, float] | None:
    weights = rated.weighting.weights
    return None if weights is None else dict(zip(rated.weighting.answers, weights, strict=True))


def _experts_measure(
    rated: RatedMetric, scorers: Sequence[Scorer], resampling: Resampling | None, parts: Mapping[str, RatedMetric]
) -> ExpertsMeasure:
    """Agreement among the experts, together with the primary judge, or else the only one."""
    judges = [scorer for scorer in scorers if scorer.primary] or (list(scorers) if len(scorers) == 1 else [])
    scores = judges[0].values if judges else None
    agreement = _experts(rated, scores, resampling)
    part_agreements = {
        name: _experts(part, scores, resampling) if len(parts) > 1 else agreement for name, part in parts.items()
    }
    return ExpertsMeasure(*_measure_fields(rated), agreement, part_agreements)


def _experts(
    rated: RatedMetric, scores: Mapping[int, Mapping[int, JudgedValue]] | None, resampling: Resampling | None
) -> ExpertAgreement:
    return compare_experts(
        rated.single_ratings,
        rated.scale,
        judge=None if scores is None else rated.value_by_answer(scores),
        groups=_groups(rated),
        weights=_weights(rated),
        resampling=resampling,
    )


def _guess_dict(guess: ConstantGuess) -> dict[str, Any]:
    """Guess with its defined statistics."""
    known = {name: value for name in STATISTIC_NAMES if (value := guess.agreement.statistics[name].value) is not None}
    return {"value": guess.value, "n": guess.agreement.n, **known}


CACHE_LIFETIME = timedelta(days=30)
# Increase it when the figures or their names change, so that no older figures are shown.
CACHE_FORMAT = 8
RESAMPLES = 2000
# With this many groups, 95% intervals of kappa and correlations are narrower than 0.2.
MANY_GROUPS = 1000
_EMPTY_TABLE: tuple[int | None, int] = (None, 0)
# Requested by pages, commands and trends.
_CACHED_VARIANTS = ((RESAMPLES, Breakdown.CATEGORY), (RESAMPLES, Breakdown.NONE), (0, Breakdown.NONE))


def cached_agreement(
    run: Run, *, resamples: int = RESAMPLES, seed: int = 0, by: Breakdown = Breakdown.NONE
) -> dict[str, Any]:
    """Agreement of the run as JSON values, with intervals if ``resamples`` is above 0.

    Cached under the hash of all inputs. Seven queries on a hit; otherwise it is computed, which takes seconds for large
    runs."""
    key = _cache_key(run, resamples, seed, by)
    figures = _load_cached(key)
    if figures is None:
        resampling = Resampling(resamples, seed) if resamples > 0 else None
        figures = compute_agreement(run, resampling=resampling, by=by).to_dict()
        _store(key, figures)
    return figures


def agreement_if_cached(
    run: Run, *, resamples: int = RESAMPLES, seed: int = 0, by: Breakdown = Breakdown.NONE
) -> dict[str, Any] | None:
    """Cached agreement of the run, or ``None``. Seven queries."""
    return _load_cached(_cache_key(run, resamples, seed, by))


def cached_agreements(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """Cached agreement of several runs, by run; figures with intervals are preferred. Computes nothing.

    Seven queries for any number of runs."""
    inputs = _agreement_inputs(runs)
    keys = {
        _hash_inputs(run, resamples, 0, by, inputs[run.pk]): (run.pk, priority)
        for run in runs
        for priority, (resamples, by) in enumerate(_CACHED_VARIANTS)
    }
    cached: dict[int, tuple[int, dict[str, Any]]] = {}
    for key, content in CachedAgreement.objects.filter(key__in=keys).values_list("key", "content"):
        pk, priority = keys[key]
        if pk not in cached or priority < cached[pk][0]:
            cached[pk] = priority, content
    return {pk: content for pk, (_, content) in cached.items()}


def _load_cached(key: str) -> dict[str, Any] | None:
    content: dict[str, Any] | None = CachedAgreement.objects.filter(key=key).values_list("content", flat=True).first()
    return content


def _store(key: str, content: dict[str, Any]) -> None:
    """Store figures and delete old ones. Concurrent computations store equal figures, so conflicts are ignored."""

    def write() -> None:
        with transaction.atomic():
            CachedAgreement.objects.filter(created_at__lt=timezone.now() - CACHE_LIFETIME).delete()
            CachedAgreement.objects.bulk_create([CachedAgreement(key=key, content=content)], ignore_conflicts=True)

    retry_on_db_error(write)


def _cache_key(run: Run, resamples: int, seed: int, by: Breakdown) -> str:
    return _hash_inputs(run, resamples, seed, by, _agreement_inputs([run])[run.pk])


def _hash_inputs(run: Run, resamples: int, seed: int, by: Breakdown, inputs: Sequence[int | str | None]) -> str:
    return content_hash(["agreement", CACHE_FORMAT, run.pk, resamples, seed, str(by), *inputs])


def _agreement_inputs(runs: Sequence[Run]) -> dict[int, list[int | str | None]]:
    """Inputs of each run's figures: newest keys and counts of the tables, and the form in which labels are read.

    The tables only grow, so these values reveal every addition. Ratings that are undone leave, and return only with a
    newer one. Seven queries, and those of the reader's form."""
    answer_sets = {run.pk: run.answer_set_id for run in runs}
    answer_set_path = "answer__answer_set_id"
    scores = _newest_keys(Score.objects.filter(run__in=answer_sets), "run_id")
    ratings = _newest_keys(
        models.Rating.objects.filter(is_standing(), **{f"{answer_set_path}__in": answer_sets.values()}), answer_set_path
    )
    members = _newest_keys(
        FrameMember.objects.filter(**{f"{answer_set_path}__in": answer_sets.values()}), answer_set_path
    )
    ruling_path = "event__assignment__item__answer__answer_set_id"
    rulings = _newest_keys(EventRuling.objects.filter(**{f"{ruling_path}__in": answer_sets.values()}), ruling_path)
    gold = _newest_keys(
        models.GoldItem.objects.filter(**{f"{answer_set_path}__in": answer_sets.values()}), answer_set_path
    )
    tables = (ratings, members, rulings, gold)
    seals = _seal_inputs({run.project_id for run in runs})
    seal_by_run = {run.pk: seals[run.project_id] for run in runs}
    return {
        pk: [
            *scores.get(pk, _EMPTY_TABLE),
            *(cell for table in tables for cell in table.get(answers, _EMPTY_TABLE)),
            *seal_by_run[pk],
        ]
        for pk, answers in answer_sets.items()
    }


def _seal_inputs(projects: set[int]) -> dict[int, list[int | str | None]]:
    """Values that identify which labels of each project are sealed to the current reader."""
    gold_sets = _newest_keys(models.GoldSet.objects.filter(project__in=projects), "project_id")
    retired = _newest_keys(models.GoldRetirement.objects.filter(project__in=projects), "project_id")
    return {
        pk: [
            *gold_sets.get(pk, _EMPTY_TABLE),
            *retired.get(pk, _EMPTY_TABLE),
            *([str(label_form(pk))] if pk in gold_sets else []),
        ]
        for pk in projects
    }


def _newest_keys(rows: QuerySet[Any], by: str) -> dict[int, tuple[int | None, int]]:
    """Newest key and number of rows in each group."""
    grouped = rows.order_by().values(by).annotate(newest=Max("id"), rows=Count("id"))
    return {row[by]: (row["newest"], row["rows"]) for row in grouped}
