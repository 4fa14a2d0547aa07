"""Agreement of a run: every judge against the experts, and the experts among themselves (``docs/agreement.md``); with
its bootstrap intervals computed once for the same inputs."""

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
from review.agreement.variation import VariationMeasure, variation_from
from review.evidence.answers import lengths_of
from review.evidence.effective import Said, said_of, samples_behind
from review.evidence.experts import Anchoring, anchoring, anchoring_json
from review.evidence.sampling import Rated, Samples, weigh
from review.evidence.scorers import RULES, Judged, Scorer, title_of
from review.evidence.seals import form_of
from review.models import EventRuling, FrameMember, KeptFigures
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import NAMES
from review.statistics.agreement.ceiling import AlternativeAnnotatorTest, Ceiling, alternative_annotator_test, ceiling
from review.statistics.agreement.experts import ExpertAgreement, compare_experts, resampler_of
from review.statistics.agreement.pair import (
    ConstantGuess,
    CurvePoint,
    PairAgreement,
    compare,
    reliability_curve,
    spread,
)
from review.statistics.agreement.statistic import Rating, by_item
from review.statistics.agreement.trust import FEW, JudgeTrust, decisive_statistics, judge_trust


class By(StrEnum):
    """Into which parts the answers are told apart beside the whole."""

    NOTHING = ""
    CATEGORY = "category"
    PERIOD = "period"  # of the rating: days, weeks or months


@dataclass(frozen=True, slots=True)
class Measure:
    """What is said of one metric, by its name. ``sampling``: ``weighted`` (a draw with unequal probabilities),
    ``equal`` or ``unknown`` (hand-picked or imported without a probability); ``left_out`` counts rated answers of
    unknown sampling that are not mixed with the others."""

    metric: str
    title: Bilingual
    scale: Scale
    sampling: str
    left_out: int


@dataclass(frozen=True, slots=True)
class JudgeMeasure(Measure):
    """One scorer against the experts on one metric. ``parts`` holds the same comparison within each category or period,
    where asked for. ``guess`` is what the best constant answer would reach, ``curve`` and ``places`` what plots draw.
    ``ceiling`` and ``replaces`` (the alternative-annotator test) exist where answers have several experts' ratings.
    ``by_length`` is how judge minus experts goes with the length of answers. ``built_on`` counts rated answers that are
    left out because the scorer's prompt was worked out on their labels, ``sealed`` those whose ratings the reader may
    not see. ``trust`` is the verdict on a judge, ``None`` of rules."""

    scorer: Scorer
    agreement: PairAgreement
    parts: Mapping[str, PairAgreement]
    guess: ConstantGuess | None
    curve: tuple[CurvePoint, ...]
    places: tuple[tuple[float, float, int], ...]
    ceiling: Ceiling | None
    replaces: AlternativeAnnotatorTest | None
    by_length: LengthBias | None = None
    built_on: int = 0
    sealed: int = 0
    trust: JudgeTrust | None = None

    @property
    def author(self) -> str:
        """The scorer's name."""
        return self.scorer.author

    def to_dict(self) -> dict[str, Any]:
        """The agreement, and beside it who judged, by what, and what a constant guess and the experts reach."""
        scorer, test, guess, length = self.scorer, self.replaces, self.guess, self.by_length
        beside = self.ceiling.to_dict() if self.ceiling is not None else None
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
            "constant_guess": None if guess is None else _guess(guess),
            "ceiling": None if beside is None else {side: beside[side] for side in ("expert", "judge")},
            "alternative_annotator": None if test is None else test.to_dict(),
            "reliability_curve": [point.to_dict() for point in self.curve],
            "places": [list(place) for place in self.places],
        }


@dataclass(frozen=True, slots=True)
class ExpertsMeasure(Measure):
    """The experts among themselves on one metric."""

    agreement: ExpertAgreement
    parts: Mapping[str, ExpertAgreement]
    sealed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The agreement, and beside it the metric's title and scale and how the answers were chosen."""
        return self.agreement.to_dict() | {
            "title": {"en": self.title.en, "ko": self.title.ko},
            "scale": str(self.scale),
            "sampling": self.sampling,
            "left_out": self.left_out,
            **({"sealed": self.sealed} if self.sealed else {}),
            "warnings": list(self.agreement.warnings),
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """All agreement figures of a run. ``examples``: some of the ratings were made for show. ``by``: what ``parts`` of
    the measures are. ``variation``: why values vary, where that was asked for. ``anchoring``: name, title and figures
    of each metric whose ratings were looked at again after the judge was shown."""

    judges: tuple[JudgeMeasure, ...]
    experts: tuple[ExpertsMeasure, ...]
    examples: bool = False
    by: By = By.NOTHING
    variation: tuple[VariationMeasure, ...] | None = None
    anchoring: tuple[tuple[str, Bilingual, Anchoring], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """``{"judges": {author: {metric: {...}}}, "experts": {metric: {...}}}`` as the contract has it, with
        ``"variance": {metric: {...}}`` where it was asked for and ``"anchoring": {metric: {...}}`` where there is any.
        """
        judges: dict[str, dict[str, Any]] = {}
        experts: dict[str, dict[str, Any]] = {}
        for judge in self.judges:
            judges.setdefault(judge.author, {})[judge.metric] = judge.to_dict() | self._parts(judge.parts)
        for one in self.experts:
            experts[one.metric] = one.to_dict() | self._parts(one.parts)
        found: dict[str, Any] = {"judges": judges, "experts": experts}
        if self.variation is not None:
            found["variance"] = {one.metric: one.to_dict() for one in self.variation}
        if self.anchoring:
            found["anchoring"] = {name: anchoring_json(title, one) for name, title, one in self.anchoring}
        return found

    def _parts(self, parts: Mapping[str, PairAgreement] | Mapping[str, ExpertAgreement]) -> dict[str, Any]:
        return {f"by_{self.by}": {name: part.to_dict() for name, part in parts.items()}} if self.by else {}


def agreement_of(run: Run, *, resampling: Resampling | None = None, by: By = By.NOTHING) -> Agreement:
    """All agreement figures of the run's answers and why they vary, in a fixed number of queries (twelve).

    ``resampling`` gives intervals; its groups and strata are the run's and not read. Without it nothing is slow.
    """
    said = said_of(run)
    found = agreement_from(said, samples_behind(run, said), lengths_of(run), resampling=resampling, by=by)
    return replace(found, variation=variation_from(said))


def agreement_from(
    said: Said,
    samples: Samples,
    lengths: Mapping[int, int],
    *,
    resampling: Resampling | None = None,
    by: By = By.NOTHING,
) -> Agreement:
    """All agreement figures of everything that was said; ``lengths`` are those of :func:`lengths_of`."""
    judges: list[JudgeMeasure] = []
    experts: list[ExpertsMeasure] = []
    for pk in sorted(said.blind_by_metric, key=lambda pk: said.names[pk]):
        blind = said.blind_by_metric[pk]
        ratings = {answer: blind[answer] for answer in said.answers if answer in blind}
        weighting = weigh(ratings, samples.places(pk, said.ratings_by_metric[pk]))
        metric = said.metrics[pk]
        rated = Rated(metric, said.names[pk], metric.read_scale(), ratings, weighting, said.answers)
        parts = _parts(rated, by)
        scorers = [one for one in said.scorers if pk in one.said]
        sealed = len({row.answer_id for row in said.withheld if row.metric_id == pk})
        among = _experts_measure(rated, scorers, resampling, parts)
        for one in scorers:
            unseen = rated.without({answer for answer, metric_id in one.built if metric_id == pk})
            measure = _judge_measure(unseen, one, resampling, parts if unseen is rated else _parts(unseen, by))
            left_out = len(weighting.answers) - len(unseen.weighting.answers)
            measure = replace(measure, by_length=_by_length(unseen, one, lengths), built_on=left_out, sealed=sealed)
            trust = None if one.author == RULES else _trust(measure, among, unseen, complete=resampling is not None)
            judges.append(replace(measure, trust=trust))
        experts.append(replace(among, sealed=sealed))
    moved = anchoring(said.ratings, said.scored)
    return Agreement(
        tuple(judges),
        tuple(experts),
        any(row.example for row in said.ratings),
        by,
        anchoring=tuple((said.names[pk], title_of(said.metrics[pk]), one) for pk, one in moved.items()),
    )


def _parts(rated: Rated, by: By) -> dict[str, Rated]:
    if by is By.CATEGORY:
        return rated.by_category()
    return rated.by_period() if by is By.PERIOD else {}


def _judge_measure(
    rated: Rated,
    scorer: Scorer,
    resampling: Resampling | None,
    parts: Mapping[str, Rated],
) -> JudgeMeasure:
    said, weights = rated.said(scorer.said), rated.weighting.weights
    single = rated.single
    overlap = len({rating.item for rating in single}) < len(single)
    whole = _compared(rated, scorer, resampling)
    return JudgeMeasure(
        *_about(rated),
        scorer=scorer,
        agreement=whole,
        parts={name: _compared(part, scorer, resampling) if len(parts) > 1 else whole for name, part in parts.items()},
        guess=rated.guess,
        curve=reliability_curve(said, rated.means, rated.scale, weights, rated.groups),
        places=spread(said, rated.means, rated.scale),
        ceiling=_ceiling(rated, scorer, single, resampling) if overlap else None,
        replaces=_replaces(rated, scorer, single) if overlap else None,
    )


def _trust(measure: JudgeMeasure, among: ExpertsMeasure, rated: Rated, *, complete: bool) -> JudgeTrust:
    """The verdict on a judge. The intervals that decide it are computed here unless the measure is ``complete``. Few
    answers need none, and those of many questions are too narrow to matter."""
    pair = measure.agreement
    if not complete and pair.n >= FEW and len(set(rated.groups)) < MANY_GROUPS:
        pair = _compared(rated, measure.scorer, Resampling(RESAMPLES), decisive_statistics(rated.scale))
    lower_better = rated.metric.direction == Direction.LOWER
    return judge_trust(pair, among.agreement, rated.scale, built_on=measure.built_on, lower_better=lower_better)


def _by_length(rated: Rated, scorer: Scorer, lengths: Mapping[int, int]) -> LengthBias | None:
    """The correlation of judge minus experts with the length of the answer; ``None`` for classes."""
    of_answers = zip(rated.weighting.answers, rated.said(scorer.said), rated.means, strict=True)
    apart = [(ours - mean, lengths[at]) for at, ours, mean in of_answers if _number(ours) and _number(mean)]
    return length_bias([far for far, _ in apart], [size for _, size in apart])


def _number(value: float | str | None) -> TypeGuard[float]:
    return isinstance(value, float | int) and math.isfinite(value)


def _about(rated: Rated) -> tuple[str, Bilingual, Scale, str, int]:
    """What is said of any metric."""
    return rated.name, title_of(rated.metric), rated.scale, rated.weighting.sampling, rated.weighting.left_out


def _compared(
    rated: Rated, scorer: Scorer, resampling: Resampling | None, only: Collection[str] = NAMES
) -> PairAgreement:
    said, weights = rated.said(scorer.said), rated.weighting.weights
    return compare(said, rated.means, rated.scale, weights, resampling=rated.resampling(resampling), only=only)


def _ceiling(rated: Rated, scorer: Scorer, single: Sequence[Rating], resampling: Resampling | None) -> Ceiling:
    items, values = by_item(single), rated.values(scorer.said)
    drawn = resampler_of(items, _groups(rated), resampling) if resampling is not None else None
    return ceiling(items, rated.scale, values, weights=_weights(rated), resampling=resampling, drawn=drawn)


def _replaces(rated: Rated, scorer: Scorer, single: Sequence[Rating]) -> AlternativeAnnotatorTest:
    return alternative_annotator_test(single, rated.values(scorer.said), rated.scale, groups=_groups(rated))


def _groups(rated: Rated) -> dict[Any, str]:
    return dict(zip(rated.weighting.answers, rated.groups, strict=True))


def _weights(rated: Rated) -> dict[Any, float] | None:
    weights = rated.weighting.weights
    return None if weights is None else dict(zip(rated.weighting.answers, weights, strict=True))


def _experts_measure(
    rated: Rated, scorers: Sequence[Scorer], resampling: Resampling | None, parts: Mapping[str, Rated]
) -> ExpertsMeasure:
    """The experts among themselves; beside them the primary judge, else the only one there is."""
    beside = [one for one in scorers if one.primary] or (list(scorers) if len(scorers) == 1 else [])
    said = beside[0].said if beside else None
    found = _experts(rated, said, resampling)
    of_parts = {name: _experts(part, said, resampling) if len(parts) > 1 else found for name, part in parts.items()}
    return ExpertsMeasure(*_about(rated), found, of_parts)


def _experts(
    rated: Rated, said: Mapping[int, Mapping[int, Judged]] | None, resampling: Resampling | None
) -> ExpertAgreement:
    return compare_experts(
        rated.single,
        rated.scale,
        judge=None if said is None else rated.values(said),
        groups=_groups(rated),
        weights=_weights(rated),
        resampling=resampling,
    )


def _guess(guess: ConstantGuess) -> dict[str, Any]:
    """The guess and every statistic that it has a value of."""
    known = {name: value for name in NAMES if (value := guess.agreement.statistics[name].value) is not None}
    return {"value": guess.value, "n": guess.agreement.n, **known}


KEPT = timedelta(days=30)
FORM = 8  # rises when the figures or their names change, so that nothing older is shown
RESAMPLES = 2000
MANY_GROUPS = 1000  # with so many, 95% intervals of kappa and correlations are narrower than 0.2
_NOTHING: tuple[int | None, int] = (None, 0)
_ASKED_FOR = ((RESAMPLES, By.CATEGORY), (RESAMPLES, By.NOTHING), (0, By.NOTHING))  # by pages, commands and trends


def kept_agreement(run: Run, *, resamples: int = RESAMPLES, seed: int = 0, by: By = By.NOTHING) -> dict[str, Any]:
    """The agreement of the run as JSON values, with intervals where ``resamples`` is above 0.

    Kept under the hash of everything it depends on. Seven queries where nothing has changed; else it is computed, which
    takes seconds for large runs.
    """
    key = _key(run, resamples, seed, by)
    found = _kept(key)
    if found is None:
        resampling = Resampling(resamples, seed) if resamples > 0 else None
        found = agreement_of(run, resampling=resampling, by=by).to_dict()
        _keep(key, found)
    return found


def agreement_if_kept(
    run: Run, *, resamples: int = RESAMPLES, seed: int = 0, by: By = By.NOTHING
) -> dict[str, Any] | None:
    """The same where it is at hand, without computing anything. Seven queries."""
    return _kept(_key(run, resamples, seed, by))


def kept_of(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """What is at hand of several runs, by run: figures with intervals before those without. Nothing is computed.
    Seven queries however many runs there are."""
    inputs = _inputs_of(runs)
    keys = {
        _hashed(run, resamples, 0, by, inputs[run.pk]): (run.pk, place)
        for run in runs
        for place, (resamples, by) in enumerate(_ASKED_FOR)
    }
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    for key, content in KeptFigures.objects.filter(key__in=keys).values_list("key", "content"):
        pk, place = keys[key]
        if pk not in found or place < found[pk][0]:
            found[pk] = place, content
    return {pk: content for pk, (_, content) in found.items()}


def _kept(key: str) -> dict[str, Any] | None:
    content: dict[str, Any] | None = KeptFigures.objects.filter(key=key).values_list("content", flat=True).first()
    return content


def _keep(key: str, content: dict[str, Any]) -> None:
    """Two who compute the same at the same time keep the same; what nobody asked for in a month goes."""

    def write() -> None:
        with transaction.atomic():
            KeptFigures.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
            KeptFigures.objects.bulk_create([KeptFigures(key=key, content=content)], ignore_conflicts=True)

    retry_on_db_error(write)


def _key(run: Run, resamples: int, seed: int, by: By) -> str:
    return _hashed(run, resamples, seed, by, _inputs_of([run])[run.pk])


def _hashed(run: Run, resamples: int, seed: int, by: By, inputs: Sequence[int | str | None]) -> str:
    return content_hash(["agreement", FORM, run.pk, resamples, seed, str(by), *inputs])


def _inputs_of(runs: Sequence[Run]) -> dict[int, list[int | str | None]]:
    """What the figures of each run depend on: those tables only grow, so that their newest keys and counts tell whether
    anything was added, and in which form labels are read. Seven queries, and those of the reader's form."""
    sets = {run.pk: run.answer_set_id for run in runs}
    of_answers = "answer__answer_set_id"
    scores = _newest(Score.objects.filter(run__in=sets), "run_id")
    ratings = _newest(models.Rating.objects.filter(**{f"{of_answers}__in": sets.values()}), of_answers)
    members = _newest(FrameMember.objects.filter(**{f"{of_answers}__in": sets.values()}), of_answers)
    of_items = "event__assignment__item__answer__answer_set_id"
    rulings = _newest(EventRuling.objects.filter(**{f"{of_items}__in": sets.values()}), of_items)
    gold = _newest(models.GoldItem.objects.filter(**{f"{of_answers}__in": sets.values()}), of_answers)
    tables = (ratings, members, rulings, gold)
    seals = _seals_of({run.project_id for run in runs})
    of_project = {run.pk: seals[run.project_id] for run in runs}
    return {
        pk: [
            *scores.get(pk, _NOTHING),
            *(cell for table in tables for cell in table.get(answers, _NOTHING)),
            *of_project[pk],
        ]
        for pk, answers in sets.items()
    }


def _seals_of(projects: set[int]) -> dict[int, list[int | str | None]]:
    """What tells which labels of each project are sealed to the current reader."""
    sets = _newest(models.GoldSet.objects.filter(project__in=projects), "project_id")
    retired = _newest(models.GoldRetirement.objects.filter(project__in=projects), "project_id")
    return {
        pk: [*sets.get(pk, _NOTHING), *retired.get(pk, _NOTHING), *([str(form_of(pk))] if pk in sets else [])]
        for pk in projects
    }


def _newest(rows: QuerySet[Any], by: str) -> dict[int, tuple[int | None, int]]:
    """Newest key and number of rows in each group."""
    grouped = rows.order_by().values(by).annotate(newest=Max("id"), rows=Count("id"))
    return {row[by]: (row["newest"], row["rows"]) for row in grouped}
