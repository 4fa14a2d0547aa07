"""With which probability the experts' ratings came to be: draws of queues, and samples made elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from review.evidence.experts import ExpertRating
from review.models import Assignment, FrameMember, QueueMetric, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.statistics.sampling.member import Drawn
from review.statistics.sampling.union import union_probability, united

IMPORTED = "import"
LEAST_SERVED = 2  # of a stratum, as for a corrected score


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands in the samples for a metric. ``probability``: of being taken by any of the draws,
    ``None`` where none is known (hand-picked, imported as unknown); ``sampled``: taken by a draw with probabilities.
    """

    probability: float | None = None
    stratum: str = ""
    sampled: bool = False


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class _OneDraw:
    queue_id: int
    after_looking: bool
    members: dict[int, Drawn]


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples behind the ratings of a run's answers. ``silent``: answers that were served in a queue and skipped
    or flagged, by queue."""

    draws: Sequence[_OneDraw]
    queues_of: Mapping[int, frozenset[int]]
    silent: Mapping[int, frozenset[int]]
    answers: Sequence[int]

    def places(self, metric_id: int, ratings: Iterable[ExpertRating]) -> dict[int, Place]:
        """Answer -> its place for the metric, of every answer in any frame. ``ratings``: all imported rows count for
        samples made elsewhere, those that could not judge too."""
        rows = [row for row in ratings if row.metric_id == metric_id]
        draws = [draw.members for draw in _since_last_look(self._draws_for(metric_id), self._served(metric_id, rows))]
        draws += _made_elsewhere([row for row in rows if row.imported], self.answers)
        found = _by_frame(draws)
        return {answer: _joined([m[answer] for m in found if answer in m]) for answer in _covered(found)}

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
        return [draw for draw in self.draws if draw.queue_id in queues]

    def _served(self, metric_id: int, rows: Iterable[ExpertRating]) -> frozenset[int]:
        return self.silent_for(metric_id) | {row.answer_id for row in rows}

    def silent_for(self, metric_id: int) -> frozenset[int]:
        """Answers that a reviewer was served for the metric and did not rate."""
        queues = self.queues_of.get(metric_id, frozenset())
        return frozenset().union(*(self.silent.get(queue, frozenset()) for queue in queues))


def samples_of(answer_set_id: int, answers: Sequence[int]) -> Samples:
    """The samples over the answers of a set, of blind queues only: assisted ratings are no sample of blind opinions.
    Three queries."""
    blind = ReviewQueue.Mode.BLIND
    frame = FrameMember.objects.filter(answer__answer_set_id=answer_set_id, draw__queue__mode=blind)
    draws: dict[int, _OneDraw] = {}
    columns = ("draw_id", "draw__queue_id", "draw__planned_after_looking", "answer_id")
    for draw_id, queue_id, looked, answer_id, probability, stratum, sampled in frame.order_by("draw_id").values_list(
        *columns, "probability", "stratum", "sampled"
    ):
        draw = draws.setdefault(draw_id, _OneDraw(queue_id or 0, looked, {}))
        draw.members[answer_id] = Drawn(answer_id, stratum, probability, sampled)
    queues = {draw.queue_id for draw in draws.values()}
    return Samples(list(draws.values()), _queues_by_metric(queues), _silent(queues), list(answers))


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


def _by_chance(one: Drawn) -> bool:
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


def _made_elsewhere(rows: Sequence[ExpertRating], answers: Sequence[int]) -> list[dict[int, Drawn]]:
    """Imported ratings as draws: ``all``, ``uniform`` (n of N), or each row's own probability."""
    found: list[dict[int, Drawn]] = []
    if any(row.sampling == "all" for row in rows):
        found.append({answer: Drawn(answer, IMPORTED, 1.0, True) for answer in answers})
    taken = {row.answer_id for row in rows if row.sampling == "uniform"} & set(answers)
    if taken:
        share = len(taken) / len(answers)
        found.append({answer: Drawn(answer, IMPORTED, share, answer in taken) for answer in answers})
    own = {
        row.answer_id: Drawn(row.answer_id, IMPORTED, row.probability, True)
        for row in rows
        if row.probability is not None and row.sampling not in {"all", "uniform"}
    }
    return [*found, own] if own else found


def _by_frame(draws: Sequence[dict[int, Drawn]]) -> list[dict[int, Drawn]]:
    """The draws, those over the same answers as one."""
    same: dict[frozenset[int], list[dict[int, Drawn]]] = {}
    for draw in draws:
        same.setdefault(frozenset(draw), []).append(draw)
    return [
        ones[0] if len(ones) == 1 else {one.key: one for one in united([list(one.values()) for one in ones])}
        for ones in same.values()
    ]


def _covered(draws: Sequence[Mapping[int, Drawn]]) -> list[int]:
    return list(dict.fromkeys(answer for draw in draws for answer in draw))


def _joined(members: Sequence[Drawn]) -> Place:
    """Independent draws over different answers as one: union probability, strata crossed, so that answers only some of
    them could take stay apart; hand-picking adds nothing."""
    if len(members) == 1:  # the usual case, for ten thousand answers at a time
        only = members[0]
        return NOWHERE if only.probability is None else Place(only.probability, only.stratum, only.sampled)
    random = [member for member in members if member.probability is not None]
    if not random:
        return NOWHERE
    return Place(
        probability=union_probability([member.probability for member in random]),
        stratum=" & ".join(dict.fromkeys(member.stratum for member in random)),
        sampled=any(member.sampled for member in random),
    )
