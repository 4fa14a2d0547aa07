"""Cases for leads: diverging or tied first ratings, flags, escalations, and items that nobody is left to rate.

A case is an item of a queue. Until it is decided, the lead sees neither reviewers nor judge values."""

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
from review.evidence.answers import record_exposure
from review.evidence.effective import adjudicated_metrics_by_answer, standing_decision
from review.evidence.experts import is_standing
from review.evidence.rating_input import scale_distance
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
from review.ratings.card import CardMetric, Claim, Passage, answer_passages, card_claims, card_metrics
from review.ratings.item_state import PASSED, RATED
from review.ratings.reveals import JudgeComparison, comparisons_for_item
from review.ratings.submitting import item_metrics

EVENT_VERBS = ("flag", "escalate")
# Items loaded together.
BATCH_SIZE = 200
# Relations that cases read.
RELATED = ("queue", "answer__question", "run")


class CaseReason(StrEnum):
    """Reason why an item needs a lead."""

    ESCALATION = "escalation"
    FLAG = "flag"
    DIFFERENCE = "difference"
    TIE = "tie"
    PASSED_ON = "passed_on"


@dataclass(frozen=True, slots=True)
class Case:
    """An item with its open matters.

    ``distances`` are metrics whose first ratings diverge or tie, with the distance in levels (infinite for classes and
    yes/no). ``events`` are open flags and escalations. ``ratings`` are the newest first ratings by reviewer and metric.
    """

    item: ReviewItem
    why: tuple[CaseReason, ...]
    distances: Mapping[int, float]
    events: tuple[ItemEvent, ...]
    ratings: tuple[Rating, ...]
    adjudicated: frozenset[int]

    @property
    def is_open(self) -> bool:
        return bool(self.why)

    @property
    def max_distance(self) -> float:
        """Largest distance of two ratings; 0 without a dispute."""
        return max(self.distances.values(), default=0.0)


def open_cases(items: QuerySet[ReviewItem], limit: int = 200) -> list[Case]:
    """Return open cases among the items: escalations first, then flags, then by distance.

    A fixed number of queries for every 200 candidates, until there are enough."""
    keys = list(possible_cases(items).values_list("pk", flat=True))
    cases: list[Case] = []
    related = ReviewItem.objects.select_related(*RELATED)
    for start in range(0, len(keys), BATCH_SIZE):
        rows = related.in_bulk(keys[start : start + BATCH_SIZE])
        cases += [case for case in load_cases(list(rows.values())) if case.is_open]
        if len(cases) >= limit:
            break
    order = list(CaseReason)
    return sorted(cases, key=lambda case: (order.index(case.why[0]), -case.max_distance, case.item.pk))[:limit]


def load_case(item: ReviewItem) -> Case:
    return load_cases([item])[0]


def load_cases(items: Sequence[ReviewItem]) -> list[Case]:
    """Load the cases of items, open or not, in order. Four queries."""
    events, ratings = _open_events(items), _first_ratings(items)
    queue_metrics: defaultdict[int, set[int]] = defaultdict(set)
    rows = QueueMetric.objects.filter(queue__in={i.queue_id for i in items})
    for queue_id, metric_id in rows.values_list("queue_id", "metric_id"):
        queue_metrics[queue_id].add(metric_id)
    decided = adjudicated_metrics_by_answer([item.answer_id for item in items])
    return [
        _case(
            item,
            events[item.pk],
            ratings[item.pk],
            decided.get(item.answer_id, frozenset()),
            item.metric_ids or queue_metrics[item.queue_id],
        )
        for item in items
    ]


def _case(
    item: ReviewItem,
    events: Sequence[ItemEvent],
    ratings: Sequence[Rating],
    decided: frozenset[int],
    metric_ids: Collection[int],
) -> Case:
    distances, tied = _distances(item, ratings, decided)
    settled = decided.issuperset(metric_ids)
    # Adjudicating every metric answers an escalation.
    if settled:
        events = [event for event in events if event.verb != "escalate"]
    disputed = item.state == ReviewItem.State.DISPUTED
    # Withdrawn ratings do not count.
    raters = {row.assignment_id for row in ratings if row.assignment and row.assignment.state in RATED}
    why = [
        (CaseReason.ESCALATION, any(event.verb == "escalate" for event in events)),
        (CaseReason.FLAG, any(event.verb == "flag" for event in events)),
        (CaseReason.DIFFERENCE, bool(distances) and tied != set(distances)),
        (CaseReason.TIE, bool(tied)),
        (CaseReason.PASSED_ON, disputed and not events and not settled and len(raters) < item.reviews_needed),
    ]
    reasons = tuple(reason for reason, holds in why if holds)
    return Case(item, reasons, distances, tuple(events), tuple(ratings), decided)


def possible_cases(items: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """Return items that may be cases: disputed, with an open event, or with diverging first ratings.

    Items with an open event or dispute come first, then the newest."""
    unruled = ItemEvent.objects.filter(
        ~Exists(EventRuling.objects.filter(event=OuterRef("pk"))), assignment__item=OuterRef("pk"), verb__in=EVENT_VERBS
    )
    raised = Q(state=ReviewItem.State.DISPUTED) | Exists(unruled)
    rows = items.filter(raised | Q(pk__in=_items_in_disagreement(items))).exclude(state=ReviewItem.State.WITHDRAWN)
    return rows.annotate(raised=ExpressionWrapper(raised, BooleanField())).order_by("-raised", "-pk")


def _items_in_disagreement(items: QuerySet[ReviewItem]) -> QuerySet[Any]:
    """Select items whose first ratings diverge, in one pass over all ratings, including withdrawn ones.

    Without levels any difference counts. Reading all ratings keeps later agreement from hiding an early difference."""
    of_queue = "assignment__queue__adjudicate_from"
    rows = readable(Rating.objects.filter(assignment__item__in=items.order_by(), phase="initial", cannot_judge=False))
    rows = rows.order_by()
    grouped = rows.values("assignment__item", "metric", "metric__scale", of_queue).annotate(
        gap=Max("value") - Min("value"), labels=Count("label", distinct=True)
    )
    levels = Q(metric__scale__startswith=ScaleKind.LEVELS)
    disagreement = (levels & Q(gap__gte=F(of_queue), gap__gt=0)) | (~levels & Q(gap__gt=0)) | Q(labels__gt=1)
    disputed_items: QuerySet[Any] = grouped.filter(disagreement).values("assignment__item")
    return disputed_items


def _open_events(items: Sequence[ReviewItem]) -> defaultdict[int, list[ItemEvent]]:
    rulings = EventRuling.objects.filter(event=OuterRef("pk"))
    rows = ItemEvent.objects.filter(~Exists(rulings), assignment__item__in=items, verb__in=EVENT_VERBS)
    by_item: defaultdict[int, list[ItemEvent]] = defaultdict(list)
    for event in rows.select_related("assignment").order_by("pk"):
        by_item[event.assignment.item_id].append(event)
    return by_item


def _first_ratings(items: Sequence[ReviewItem]) -> defaultdict[int, list[Rating]]:
    rows = readable(Rating.objects.filter(is_standing(), assignment__item__in=items, phase="initial"))
    rows = rows.select_related("metric", "assignment")
    newest = {(row.assignment_id, row.metric_id): row for row in rows.order_by("seq", "pk")}
    by_item: defaultdict[int, list[Rating]] = defaultdict(list)
    for row in newest.values():
        if row.assignment:
            by_item[row.assignment.item_id].append(row)
    return by_item


def _distances(
    item: ReviewItem, ratings: Sequence[Rating], decided: Collection[int]
) -> tuple[dict[int, float], frozenset[int]]:
    """Return the distance of metrics that diverge as far as the queue's threshold or tie, and the tied metrics."""
    by_metric: defaultdict[int, list[Rating]] = defaultdict(list)
    for row in ratings:
        if not row.cannot_judge and row.metric_id not in decided:
            by_metric[row.metric_id].append(row)
    distances, tied = {}, set()
    for metric_id, rows in by_metric.items():
        scale = rows[0].metric.read_scale()
        max_distance = max(
            (scale_distance(scale, first, second) for first, second in combinations(rows, 2)), default=0.0
        )
        is_split = (
            scale.kind in {ScaleKind.CLASS, ScaleKind.YES_NO}
            and majority(str(row.label if row.value is None else row.value) for row in rows) is None
        )
        if is_split:
            tied.add(metric_id)
        if is_split or max_distance >= item.queue.adjudicate_from > 0:
            distances[metric_id] = max_distance
    return distances, frozenset(tied)


@dataclass(frozen=True, slots=True)
class CaseDetail:
    """A case with its texts.

    ``decisions`` and ``adjudicated`` are by metric. ``is_decided``: nothing is open and something was adjudicated;
    until then reviewers stay anonymous and ``judge_comparisons`` is empty. A lead who may still rate the item
    (``to_rate``) does not see the ratings."""

    case: Case
    metrics: tuple[tuple[int, CardMetric], ...]
    decisions: Mapping[int, Sequence[Override]]
    adjudicated: Mapping[int, Override]
    is_decided: bool
    to_rate: bool
    judge_comparisons: Mapping[int, JudgeComparison]
    claims: tuple[Claim, ...]
    passages: tuple[Passage, ...] | None
    suggestions: tuple[str, ...]


def show_case(item: ReviewItem, user: User, language: str) -> CaseDetail:
    """Build the case for a lead. Showing judge values is recorded as exposure."""
    to_rate = _may_still_rate(item, user)
    case = replace(load_case(item), ratings=()) if to_rate else load_case(item)
    rows = item_metrics(item)
    decisions: dict[int, list[Override]] = {}
    overrides = readable(Override.objects.filter(answer=item.answer_id), own=Q(by=user)).order_by("seq")
    for row in overrides.select_related("by", "metric"):
        decisions.setdefault(row.metric_id, []).append(row)
    standing_decisions = {
        metric: decision
        for metric, metric_decisions in decisions.items()
        if (decision := standing_decision(metric_decisions)) is not None
    }
    adjudicated = {
        metric: decision
        for metric, decision in standing_decisions.items()
        if decision.kind == Override.Kind.ADJUDICATION
    }
    is_decided = bool(adjudicated) and not case.is_open
    judge_comparisons: dict[int, JudgeComparison] = {}
    if is_decided:
        record_exposure(user, item.answer, "adjudication")
        judge_comparisons = {comparison.metric.pk: comparison for comparison in comparisons_for_item(item)}
    suggestions = SuggestedAnswer.objects.filter(assignment__item__answer=item.answer_id)
    texts = readable(suggestions, "assignment__item__answer", own=Q(assignment__reviewer=user)).order_by("-pk")
    return CaseDetail(
        case=case,
        metrics=tuple(zip([row.metric_id for row in rows], card_metrics(rows, language, item), strict=True)),
        decisions=decisions,
        adjudicated=adjudicated,
        is_decided=is_decided,
        to_rate=to_rate,
        judge_comparisons=judge_comparisons,
        claims=card_claims(item, with_judge=False),
        passages=answer_passages(item.answer) if item.answer.retrieves else None,
        suggestions=tuple(texts.values_list("text", flat=True)[:20]),
    )


def _may_still_rate(item: ReviewItem, user: User) -> bool:
    """Return whether the user reviews in the open queue and may still be assigned the item."""
    if (item.state, item.queue.state) != (ReviewItem.State.OPEN, ReviewQueue.State.OPEN):
        return False
    done = item.assignments.filter(reviewer=user, state__in=(*RATED, *PASSED)).exists()
    return not done and item.queue.members.filter(reviewer=user).exists()
