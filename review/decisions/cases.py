"""What waits for a lead: first ratings far apart or evenly split, flags, escalations, items passed on that nobody is
left to rate.

A case is an item of a queue. Whoever decides it sees neither who rated nor what the judge said before the decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import Any

from django.db.models import BooleanField, Count, Exists, ExpressionWrapper, F, Max, Min, OuterRef, Q, QuerySet

from evaluation.core.scales import ScaleKind
from evaluation.models import User
from review.evidence.answers import expose
from review.evidence.effective import adjudicated, standing
from review.evidence.rating_input import distance
from review.evidence.scorers import majority
from review.evidence.seals import readable
from review.models import (
    EventRuling,
    ItemEvent,
    Override,
    QueueMetric,
    Rating,
    ReviewItem,
    ReviewQueue,
    SuggestedAnswer,
)
from review.ratings.card import CardMetric, Claim, Passage, card_metrics, claims_on_card, passages_of
from review.ratings.reveals import JudgeSaid, said_of_item
from review.ratings.settling import PASSED, RATED
from review.ratings.submitting import asked_of

RAISED = ("flag", "escalate")
AT_ONCE = 200  # items looked at together
NEEDED = ("queue", "answer__question", "run")  # of an item that is looked at


class Why(StrEnum):
    """Why an item is a lead's matter."""

    ESCALATION = "escalation"
    FLAG = "flag"
    DIFFERENCE = "difference"
    TIE = "tie"
    PASSED_ON = "passed_on"


@dataclass(frozen=True, slots=True)
class Case:
    """An item with what is open about it. ``apart`` are the metrics whose first ratings lie apart or are split evenly,
    with the distance in levels (infinite for classes and yes/no). ``events`` are flags and escalations nobody has ruled
    on. ``ratings`` are the newest first ratings, one for each reviewer and metric."""

    item: ReviewItem
    why: tuple[Why, ...]
    apart: Mapping[int, float]
    events: tuple[ItemEvent, ...]
    ratings: tuple[Rating, ...]
    adjudicated: frozenset[int]

    @property
    def is_open(self) -> bool:
        """Whether anything is left to decide."""
        return bool(self.why)

    @property
    def furthest(self) -> float:
        """The largest distance between two ratings, 0 where none lie apart."""
        return max(self.apart.values(), default=0.0)


def open_cases(items: QuerySet[ReviewItem], most: int = 200) -> list[Case]:
    """The open cases among the items, escalations first, then flags, then by distance. A fixed number of queries for
    every 200 items that may be cases, until there are enough."""
    keys = list(possible_cases(items).values_list("pk", flat=True))
    found: list[Case] = []
    related = ReviewItem.objects.select_related(*NEEDED)
    for start in range(0, len(keys), AT_ONCE):
        rows = related.in_bulk(keys[start : start + AT_ONCE])
        found += [case for case in cases_of(list(rows.values())) if case.is_open]
        if len(found) >= most:
            break
    order = list(Why)
    return sorted(found, key=lambda case: (order.index(case.why[0]), -case.furthest, case.item.pk))[:most]


def case_of(item: ReviewItem) -> Case:
    """One item as a case, open or not."""
    return cases_of([item])[0]


def cases_of(items: Sequence[ReviewItem]) -> list[Case]:
    """The items as cases, in their order. Four queries."""
    events, ratings = _events(items), _first_ratings(items)
    asked: defaultdict[int, set[int]] = defaultdict(set)
    rows = QueueMetric.objects.filter(queue__in={i.queue_id for i in items})
    for queue_id, metric_id in rows.values_list("queue_id", "metric_id"):
        asked[queue_id].add(metric_id)
    decided = adjudicated([item.answer_id for item in items])
    return [
        _case(
            item,
            events[item.pk],
            ratings[item.pk],
            decided.get(item.answer_id, frozenset()),
            item.asks or asked[item.queue_id],
        )
        for item in items
    ]


def _case(
    item: ReviewItem,
    events: Sequence[ItemEvent],
    ratings: Sequence[Rating],
    decided: frozenset[int],
    asked: Collection[int],
) -> Case:
    apart, tied = _apart(item, ratings, decided)
    settled = decided.issuperset(asked)
    if settled:  # an escalation asked for just that
        events = [event for event in events if event.verb != "escalate"]
    disputed = item.state == ReviewItem.State.DISPUTED
    # What was taken back does not count.
    raters = {row.assignment_id for row in ratings if row.assignment and row.assignment.state in RATED}
    why = [
        (Why.ESCALATION, any(event.verb == "escalate" for event in events)),
        (Why.FLAG, any(event.verb == "flag" for event in events)),
        (Why.DIFFERENCE, bool(apart) and tied != set(apart)),
        (Why.TIE, bool(tied)),
        (Why.PASSED_ON, disputed and not events and not settled and len(raters) < item.reviews_needed),
    ]
    named = tuple(reason for reason, holds in why if holds)
    return Case(item, named, apart, tuple(events), tuple(ratings), decided)


def possible_cases(items: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """Items that may be cases: in dispute, with an open event, or with first ratings that lie apart. Those about which
    somebody said something come first, then the newest."""
    unruled = ItemEvent.objects.filter(
        ~Exists(EventRuling.objects.filter(event=OuterRef("pk"))), assignment__item=OuterRef("pk"), verb__in=RAISED
    )
    raised = Q(state=ReviewItem.State.DISPUTED) | Exists(unruled)
    rows = items.filter(raised | Q(pk__in=_apart_in(items))).exclude(state=ReviewItem.State.WITHDRAWN)
    return rows.annotate(raised=ExpressionWrapper(raised, BooleanField())).order_by("-raised", "-pk")


def _apart_in(items: QuerySet[ReviewItem]) -> QuerySet[Any]:
    """Which of the items have first ratings far apart, or somewhat where the scale has no levels; what was taken back
    since is among them. One pass over the ratings, so that no agreement of others hides an old difference."""
    of_queue = "assignment__queue__adjudicate_from"
    rows = readable(Rating.objects.filter(assignment__item__in=items.order_by(), phase="initial", cannot_judge=False))
    rows = rows.order_by()
    grouped = rows.values("assignment__item", "metric", "metric__scale", of_queue).annotate(
        gap=Max("value") - Min("value"), labels=Count("label", distinct=True)
    )
    levels = Q(metric__scale__startswith=ScaleKind.LEVELS)
    far = (levels & Q(gap__gte=F(of_queue), gap__gt=0)) | (~levels & Q(gap__gt=0)) | Q(labels__gt=1)
    found: QuerySet[Any] = grouped.filter(far).values("assignment__item")
    return found


def _events(items: Sequence[ReviewItem]) -> defaultdict[int, list[ItemEvent]]:
    ruled = EventRuling.objects.filter(event=OuterRef("pk"))
    rows = ItemEvent.objects.filter(~Exists(ruled), assignment__item__in=items, verb__in=RAISED)
    found: defaultdict[int, list[ItemEvent]] = defaultdict(list)
    for event in rows.select_related("assignment").order_by("pk"):
        found[event.assignment.item_id].append(event)
    return found


def _first_ratings(items: Sequence[ReviewItem]) -> defaultdict[int, list[Rating]]:
    rows = readable(Rating.objects.filter(assignment__item__in=items, phase="initial"))
    rows = rows.select_related("metric", "assignment")
    newest = {(row.assignment_id, row.metric_id): row for row in rows.order_by("seq", "pk")}
    found: defaultdict[int, list[Rating]] = defaultdict(list)
    for row in newest.values():
        if row.assignment:
            found[row.assignment.item_id].append(row)
    return found


def _apart(
    item: ReviewItem, ratings: Sequence[Rating], decided: Collection[int]
) -> tuple[dict[int, float], frozenset[int]]:
    """Metric -> distance where two first ratings lie as far apart as the queue says, and which of them are ties."""
    by_metric: defaultdict[int, list[Rating]] = defaultdict(list)
    for row in ratings:
        if not row.cannot_judge and row.metric_id not in decided:
            by_metric[row.metric_id].append(row)
    apart, tied = {}, set()
    for metric_id, rows in by_metric.items():
        scale = rows[0].metric.read_scale()
        furthest = max((distance(scale, one, other) for one, other in combinations(rows, 2)), default=0.0)
        split = (
            scale.kind in {ScaleKind.CLASS, ScaleKind.YES_NO}
            and majority(str(row.label if row.value is None else row.value) for row in rows) is None
        )
        if split:
            tied.add(metric_id)
        if split or furthest >= item.queue.adjudicate_from > 0:
            apart[metric_id] = furthest
    return apart, frozenset(tied)


@dataclass(frozen=True, slots=True)
class CaseShown:
    """A case with its texts. ``decisions`` and ``adjudicated`` are by metric. It is ``over`` when nothing is open and
    something was adjudicated; until then nobody is named and ``said`` is empty. A lead who may yet be given the item
    (``to_rate``) is not told what others said of it."""

    case: Case
    metrics: tuple[tuple[int, CardMetric], ...]
    decisions: Mapping[int, Sequence[Override]]
    adjudicated: Mapping[int, Override]
    over: bool
    to_rate: bool
    said: Mapping[int, JudgeSaid]
    claims: tuple[Claim, ...]
    passages: tuple[Passage, ...] | None
    suggestions: tuple[str, ...]


def show_case(item: ReviewItem, user: User, language: str) -> CaseShown:
    """The case for a lead. Where the judge is shown, that is recorded."""
    to_rate = _still_rates(item, user)
    case = replace(case_of(item), ratings=()) if to_rate else case_of(item)
    rows = asked_of(item)
    decisions: dict[int, list[Override]] = {}
    rulings = readable(Override.objects.filter(answer=item.answer_id), own=Q(by=user)).order_by("seq")
    for row in rulings.select_related("by", "metric"):
        decisions.setdefault(row.metric_id, []).append(row)
    stand = {metric: top for metric, several in decisions.items() if (top := standing(several)) is not None}
    adjudicated = {metric: top for metric, top in stand.items() if top.kind == Override.Kind.ADJUDICATION}
    over = bool(adjudicated) and not case.is_open
    said: dict[int, JudgeSaid] = {}
    if over:
        expose(user, item.answer, "adjudication")
        said = {one.metric.pk: one for one in said_of_item(item)}
    suggested = SuggestedAnswer.objects.filter(assignment__item__answer=item.answer_id)
    texts = readable(suggested, "assignment__item__answer", own=Q(assignment__reviewer=user)).order_by("-pk")
    return CaseShown(
        case=case,
        metrics=tuple(zip([row.metric_id for row in rows], card_metrics(rows, language, item), strict=True)),
        decisions=decisions,
        adjudicated=adjudicated,
        over=over,
        to_rate=to_rate,
        said=said,
        claims=claims_on_card(item, judged=False),
        passages=passages_of(item.answer) if item.answer.retrieves else None,
        suggestions=tuple(texts.values_list("text", flat=True)[:20]),
    )


def _still_rates(item: ReviewItem, user: User) -> bool:
    """Whether the person reviews in the queue, has not come to the item yet, and it still takes ratings."""
    if (item.state, item.queue.state) != (ReviewItem.State.OPEN, ReviewQueue.State.OPEN):
        return False
    done = item.assignments.filter(reviewer=user, state__in=(*RATED, *PASSED)).exists()
    return not done and item.queue.members.filter(reviewer=user).exists()
