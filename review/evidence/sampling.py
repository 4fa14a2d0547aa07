"""With which probability ratings came to be, and the blind first ones, which are compared with weights from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any

from django.utils import timezone

from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition
from review.evidence.answers import RunAnswer
from review.evidence.experts import ExpertRating
from review.evidence.scorers import Judged
from review.models import Assignment, FrameMember, QueueMetric, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.pair import ConstantGuess, best_constant_guess
from review.statistics.agreement.statistic import Rating, consensus, period_names
from review.statistics.sampling.member import NOWHERE, Place, Placed, union_probability, united

IMPORTED = "import"
LEAST_SERVED = 2  # of a stratum, as for a corrected score


@dataclass(frozen=True, slots=True)
class _OneDraw:
    queue_id: int
    metric_id: int | None
    after_looking: bool
    members: dict[int, Place]


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples behind the ratings of a run's answers. ``silent``: answers that were served in a queue and skipped
    or flagged, by queue. ``withheld`` are ratings without values that the
    reader may not see: they place their answers, which count as served and as neither rated nor silent."""

    draws: Sequence[_OneDraw]
    queues_of: Mapping[int, frozenset[int]]
    silent: Mapping[int, frozenset[int]]
    answers: Sequence[int]
    withheld: Sequence[ExpertRating] = ()
    _places: dict[int, dict[int, Place]] = field(default_factory=dict, compare=False)

    def places(self, metric_id: int, ratings: Iterable[ExpertRating]) -> dict[int, Place]:
        """Answer -> its place for the metric, of every answer in any frame. ``ratings``: all imported rows count for
        samples made elsewhere, those that could not judge too."""
        if metric_id not in self._places:
            every = (*ratings, *self.withheld)
            self._places[metric_id] = self._placed(metric_id, [row for row in every if row.metric_id == metric_id])
        return self._places[metric_id]

    def _placed(self, metric_id: int, rows: Sequence[ExpertRating]) -> dict[int, Place]:
        draws: list[Placed] = [
            draw.members for draw in _since_last_look(self._draws_for(metric_id), self._served(metric_id, rows))
        ]
        draws += _made_elsewhere([row for row in rows if row.imported], self.answers, alone=not draws)
        found = _by_frame(draws)
        joined = cache(_joined)
        return {answer: joined(tuple([m[answer] for m in found if answer in m])) for answer in _covered(found)}

    @property
    def drawn(self) -> frozenset[int]:
        """Answers that any draw with probabilities took."""
        return frozenset(answer for draw in self.draws for answer, one in draw.members.items() if _by_chance(one))

    def waiting_for(self, metric_id: int, ratings: Iterable[ExpertRating]) -> set[int]:
        """Answers that a draw for the metric took and that nobody was served yet."""
        drawn = {key for draw in self._draws_for(metric_id) for key, one in draw.members.items() if _by_chance(one)}
        return drawn - self._served(metric_id, [row for row in ratings if row.metric_id == metric_id])

    def _draws_for(self, metric_id: int) -> list[_OneDraw]:
        queues = self.queues_of.get(metric_id, frozenset())
        return [draw for draw in self.draws if draw.queue_id in queues and draw.metric_id in {None, metric_id}]

    def _served(self, metric_id: int, rows: Iterable[ExpertRating]) -> frozenset[int]:
        withheld = (row for row in self.withheld if row.metric_id == metric_id)
        return self.silent_for(metric_id) | {row.answer_id for row in (*rows, *withheld)}

    def silent_for(self, metric_id: int) -> frozenset[int]:
        """Answers that a reviewer was served for the metric and did not rate."""
        queues = self.queues_of.get(metric_id, frozenset())
        silent = frozenset[int]().union(*(self.silent.get(queue, frozenset()) for queue in queues))
        return silent.difference(row.answer_id for row in self.withheld)


def samples_of(answer_set_id: int, answers: Sequence[int], withheld: Sequence[ExpertRating] = ()) -> Samples:
    """The samples over the answers of a set, of blind queues only: assisted ratings are no sample of blind opinions.
    Three queries."""
    blind = ReviewQueue.Mode.BLIND
    frame = FrameMember.objects.filter(answer__answer_set_id=answer_set_id, draw__queue__mode=blind)
    draws: dict[int, _OneDraw] = {}
    place = cache(Place)  # tens of thousands of answers stand in few different places
    columns = ("draw_id", "draw__queue_id", "draw__metric_id", "draw__planned_after_looking", "answer_id")
    rows = frame.order_by("draw_id").values_list(*columns, "probability", "stratum", "sampled")
    for draw_id, queue_id, metric_id, looked, answer_id, *placed in rows.iterator():
        draw = draws.setdefault(draw_id, _OneDraw(queue_id or 0, metric_id, looked, {}))
        draw.members[answer_id] = place(*placed)
    queues = {draw.queue_id for draw in draws.values()}
    return Samples(list(draws.values()), _queues_by_metric(queues), _silent(queues), list(answers), withheld)


def _queues_by_metric(queues: Collection[int]) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for metric_id, queue_id in QueueMetric.objects.filter(queue_id__in=queues).values_list("metric_id", "queue_id"):
        found.setdefault(metric_id, set()).add(queue_id)
    return {metric_id: frozenset(ids) for metric_id, ids in found.items()}


def _silent(queues: Collection[int]) -> dict[int, frozenset[int]]:
    states = [Assignment.State.SKIPPED, Assignment.State.FLAGGED]
    rows = Assignment.objects.filter(item__queue_id__in=queues, item__occasion=FIRST_OCCASION, state__in=states)
    found: dict[int, set[int]] = {}
    for queue_id, answer_id in rows.values_list("item__queue_id", "item__answer_id"):
        found.setdefault(queue_id, set()).add(answer_id)
    return {queue_id: frozenset(ids) for queue_id, ids in found.items()}


def _by_chance(one: Place) -> bool:
    """Whether a draw with probabilities took the answer."""
    return one.sampled and one.probability is not None


def _since_last_look(draws: Sequence[_OneDraw], served: Collection[int]) -> Sequence[_OneDraw]:
    """A draw planned after ratings were read takes earlier answers as certain and stands without the draws before it:
    weights are never pooled across looks.

    It takes their place once it tells something of every stratum: before, its certain answers would stand for all
    others too, and opening a queue would take away the figures that the earlier draws give. What decides is how many
    answers were ``served``, never what was said of them."""
    looks = [position for position, draw in enumerate(draws) if draw.after_looking]
    if not looks:
        return draws
    between = [draws[start:end] for start, end in pairwise([0, *looks, len(draws)]) if start < end]
    return next((some for some in reversed(between) if _under_way(some, served)), between[-1])


def _under_way(draws: Sequence[_OneDraw], served: Collection[int]) -> bool:
    """Whether two answers of every stratum, or all that were drawn of it, were served to somebody; draws over the same
    answers are one."""
    drawn: Counter[tuple[int, str]] = Counter()
    done: Counter[tuple[int, str]] = Counter()
    for number, members in enumerate(_by_frame([draw.members for draw in draws])):
        for answer, one in members.items():
            if _by_chance(one):
                drawn[number, one.stratum] += 1
                done[number, one.stratum] += answer in served
    return bool(drawn) and all(done[stratum] >= min(LEAST_SERVED, count) for stratum, count in drawn.items())


def _made_elsewhere(rows: Sequence[ExpertRating], answers: Sequence[int], *, alone: bool) -> list[Placed]:
    """Imported ratings as draws: ``all``, ``uniform`` (n of N), or each row's own probability; ``alone``: nothing was
    drawn here."""
    found: list[Placed] = []
    if any(row.sampling == "all" for row in rows):
        found.append(dict.fromkeys(answers, Place(1.0, IMPORTED, True)))
    taken = {row.answer_id for row in rows if row.sampling == "uniform"}.intersection(answers)
    if taken:
        share = len(taken) / len(answers)
        ours, theirs = Place(share, IMPORTED, True), Place(share, IMPORTED, False)
        found.append({answer: ours if answer in taken else theirs for answer in answers})
    own = {
        row.answer_id: Place(row.probability, IMPORTED, True)
        for row in rows
        if row.probability is not None and row.sampling not in {"all", "uniform"}
    }
    if own and alone and not found and _stand_for(own, len(answers)):
        rest = Place(len(own) / len(answers), IMPORTED, False)
        own = {answer: own.get(answer, rest) for answer in answers}
    return [*found, own] if own else found


MOST_DEVIATIONS = 4.0


def _stand_for(taken: Placed, size: int) -> bool:
    """Whether a sample whose file gives the probabilities of what was taken can be one of all ``size`` answers: the sum
    of 1 / p estimates their number (D. G. Horvitz, D. J. Thompson, 1952, JASA 47) and has to lie within four standard
    deviations of it, were each drawn by itself. How probable the others were is not needed, only that they were.
    """
    known = [one.probability for one in taken.values() if one.probability]
    deviation = math.sqrt(math.fsum((1.0 - p) / p**2 for p in known))
    return abs(math.fsum(1.0 / p for p in known) - size) <= MOST_DEVIATIONS * deviation + size * EQUAL_WITHIN


def _by_frame(draws: Sequence[Placed]) -> list[Placed]:
    """The draws, those over the same answers as one."""
    same: dict[frozenset[int], list[Placed]] = {}
    for draw in draws:
        same.setdefault(frozenset(draw), []).append(draw)
    return [ones[0] if len(ones) == 1 else united(ones) for ones in same.values()]


def _covered(draws: Sequence[Placed]) -> list[int]:
    return list(dict.fromkeys(answer for draw in draws for answer in draw))


def _joined(members: Sequence[Place]) -> Place:
    """Independent draws over different answers as one: union probability, strata crossed, so that answers only some of
    them could take stay apart; hand-picking adds nothing."""
    random = [member for member in members if member.probability is not None]
    if not random:
        return NOWHERE
    if len(members) == 1:
        return random[0]
    return Place(
        probability=union_probability([one.probability for one in random]),
        stratum=" & ".join(dict.fromkeys(one.stratum for one in random)),
        sampled=any(one.sampled for one in random),
    )


EQUAL_WITHIN = 1e-12


@dataclass(frozen=True, slots=True)
class Weighting:
    """Which rated answers are used together, and with which weights: ``None`` where all count the same.

    ``sampling`` is ``weighted``, ``equal`` (a sample with one probability for all) or ``unknown``; ``left_out`` counts
    rated answers of unknown sampling beside a sample with probabilities: the two are never mixed.
    """

    answers: tuple[int, ...]
    weights: tuple[float, ...] | None
    strata: tuple[str, ...]
    sampling: str
    left_out: int


def weigh(rated: Collection[int], places: Mapping[int, Place]) -> Weighting:
    """Weights 1 / (probability x response rate of the stratum). The response rate is rated / sampled, so that it
    covers both non-response and items not reached yet, whose order is random."""
    known = [answer for answer in rated if _usable(places.get(answer, NOWHERE))]
    if not known:
        answers = tuple(rated)
        return Weighting(answers, None, ("",) * len(answers), "unknown", 0)
    drawn = Counter(place.stratum for place in places.values() if _usable(place))
    response = Counter(places[answer].stratum for answer in known)
    strata = tuple(places[answer].stratum for answer in known)
    weights = tuple(
        drawn[stratum] / ((places[answer].probability or 1.0) * response[stratum])
        for answer, stratum in zip(known, strata, strict=True)
    )
    equal = max(weights) - min(weights) <= EQUAL_WITHIN * max(weights)
    return Weighting(
        tuple(known), None if equal else weights, strata, "equal" if equal else "weighted", len(rated) - len(known)
    )


def _usable(place: Place) -> bool:
    return place.sampled and place.probability is not None


OFF_SCALE = "scale"  # the reason code of a score that a judge gave off the metric's scale


@dataclass(frozen=True)
class Rated:
    """What is compared on one metric. ``ratings`` and ``answers`` may hold more answers than ``weighting`` uses."""

    metric: MetricDefinition
    name: str
    scale: Scale
    ratings: Mapping[int, list[ExpertRating]]
    weighting: Weighting
    answers: Mapping[int, RunAnswer]

    @cached_property
    def means(self) -> list[float | str | None]:
        """The experts' mean of each answer (classes: majority, ``None`` where tied)."""
        return [
            consensus([v for r in self.ratings[answer] if (v := r.answer) is not None], self.scale)
            for answer in self.weighting.answers
        ]

    @cached_property
    def groups(self) -> list[str]:
        """The group of each answer."""
        return [self.answers[answer].group for answer in self.weighting.answers]

    @cached_property
    def single(self) -> list[Rating]:
        """Every expert's value by itself."""
        return [
            Rating(answer, rating.rater, value)
            for answer in self.weighting.answers
            for rating in self.ratings[answer]
            if (value := rating.answer) is not None
        ]

    def said(self, by: Mapping[int, Mapping[int, Judged]]) -> list[float | str | None]:
        """What a scorer said of each answer, as :func:`comparable` has it; ``by`` is by metric and answer."""
        of_metric, compared = by.get(self.metric.pk, {}), cache(partial(comparable, scale=self.scale))
        return [compared(of_metric.get(answer)) for answer in self.weighting.answers]

    def values(self, by: Mapping[int, Mapping[int, Judged]]) -> dict[Any, float | str]:
        """Answer -> a scorer's value, of those that have one."""
        of_metric = by.get(self.metric.pk, {})
        return {
            answer: value
            for answer in self.weighting.answers
            if (one := of_metric.get(answer)) is not None and (value := one.answer) is not None
        }

    def resampling(self, asked: Resampling | None) -> Resampling | None:
        """The resampling with the groups and strata of these answers."""
        if asked is None:
            return None
        return replace(asked, groups=self.groups, strata=self.weighting.strata)

    @cached_property
    def guess(self) -> ConstantGuess | None:
        """The best constant answer to them."""
        return best_constant_guess(self.means, self.scale, self.weighting.weights)

    def without(self, out: AbstractSet[int]) -> Rated:
        """The same without some answers; itself where none of them is used."""
        used = self.weighting.answers
        return self if out.isdisjoint(used) else self._only([at for at, answer in enumerate(used) if answer not in out])

    def by_category(self) -> dict[str, Rated]:
        """The same, category by category."""
        return self._parts([self.answers[answer].category for answer in self.weighting.answers])

    def by_period(self) -> dict[str, Rated]:
        """The same by the time of rating: an answer belongs to the day, week or month of its newest rating, in the
        site's time zone."""
        newest = [max(rating.at for rating in self.ratings[answer]) for answer in self.weighting.answers]
        return self._parts(period_names([timezone.localtime(one).date() for one in newest]))

    def _parts(self, names: list[str]) -> dict[str, Rated]:
        places: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            places.setdefault(name, []).append(position)
        return {name: self._only(places[name]) for name in sorted(places)}

    def _only(self, positions: Collection[int]) -> Rated:
        whole = self.weighting
        part = replace(
            whole,
            answers=tuple(whole.answers[at] for at in positions),
            weights=None if whole.weights is None else tuple(whole.weights[at] for at in positions),
            strata=tuple(whole.strata[at] for at in positions),
        )
        return replace(self, weighting=part)


def comparable(said: Judged | None, scale: Scale) -> float | str | None:
    """What a judge said as the comparison reads it: a value off the scale stays off the scale, so that it is counted
    as such; everything else without a value is ``None``."""
    if said is None:
        return None
    if said.value is not None:
        return said.value
    if said.status is Status.FAILED and said.reason.partition(":")[0] == OFF_SCALE:
        return "" if scale.kind is ScaleKind.CLASS else math.inf
    return said.answer
