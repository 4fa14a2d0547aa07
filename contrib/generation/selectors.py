"""Figures of generated questions: removals by filter, decisions, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, OuterRef, Q, Subquery

from contrib.generation.models import DraftDecision, DraftQuestion, Generation, GenerationCall
from evaluation.models import Project
from evaluation.scoring.recorded_calls import estimated_cost
from review.statistics.agreement.bootstrap import clopper_pearson

Verb, Filter = DraftDecision.Verb, DraftQuestion.Filter


def latest_decision(draft: DraftQuestion) -> DraftDecision | None:
    """Return the decision that counts; no query if decisions are prefetched."""
    return max(draft.decisions.all(), key=lambda decision: decision.seq, default=None)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Share of accepted questions among the decided ones, 0 to 1, with its exact 95% interval (Clopper and Pearson).

    The interval treats questions as independent. ``edited`` counts those accepted with edits. ``share``, ``low`` and
    ``high`` are ``None`` without decisions."""

    writer: str
    decided: int
    accepted: int
    edited: int
    share: float | None
    low: float | None
    high: float | None


def _acceptance(writer: str, decisions: list[DraftDecision]) -> Acceptance:
    n, accepted = len(decisions), [decision for decision in decisions if decision.verb == Verb.ACCEPTED]
    edited = sum(decision.content is not None for decision in accepted)
    if not n:
        return Acceptance(writer, 0, 0, 0, None, None, None)
    share = len(accepted) / n
    low, high = clopper_pearson(share, n)
    return Acceptance(writer, n, len(accepted), edited, share, low, high)


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of a generation.

    ``removed`` counts by filter; ``waiting`` are questions that passed the filters and have no decision; ``rejected``
    and accepted ones include questions that a filter had removed; ``spent`` is in US dollars; ``calls`` counts calls
    with a reply."""

    written: int
    removed: dict[str, int]
    waiting: int
    rejected: int
    acceptance: Acceptance
    calls: int
    spent: Decimal


def overview(generation: Generation) -> Overview:
    """Count the questions, decisions and calls of a generation. Four queries."""
    drafts = list(generation.drafts.prefetch_related("decisions"))
    decisions = {draft.pk: decision for draft in drafts if (decision := latest_decision(draft))}
    acceptance = _acceptance(generation.writer, list(decisions.values()))
    calls = GenerationCall.objects.filter(generation=generation)
    return Overview(
        written=len(drafts),
        removed=dict(Counter(draft.removed_by for draft in drafts if draft.removed_by)),
        waiting=sum(not draft.removed_by and draft.pk not in decisions for draft in drafts),
        rejected=sum(decision.verb == Verb.REJECTED for decision in decisions.values()),
        acceptance=acceptance,
        calls=calls.exclude(reply=None).count(),
        spent=estimated_cost(calls),
    )


@dataclass(frozen=True, slots=True)
class DraftCounts:
    """Counts of a generation in a list."""

    written: int = 0
    waiting: int = 0
    accepted: int = 0


def draft_counts(generations: Iterable[Generation]) -> dict[int, DraftCounts]:
    """Return counts by generation id, without generations that have no question yet. One query."""
    latest = DraftDecision.objects.filter(draft=OuterRef("pk")).order_by("-seq").values("verb")[:1]
    drafts = DraftQuestion.objects.filter(generation__in=generations).annotate(verb=Subquery(latest))
    rows = (
        drafts.order_by()
        .values_list("generation")
        .annotate(
            written=Count("pk"),
            waiting=Count("pk", filter=Q(verb=None, removed_by="")),
            accepted=Count("pk", filter=Q(verb=Verb.ACCEPTED)),
        )
    )
    return {pk: DraftCounts(*counts) for pk, *counts in rows}


def acceptance_by_writer(project: Project) -> list[Acceptance]:
    """Return the acceptance of each generator version in a project, newest first."""
    drafts = DraftQuestion.objects.filter(generation__corpus__project=project, decisions__isnull=False).distinct()
    decisions_by_writer: dict[str, list[DraftDecision]] = {}
    for draft in drafts.select_related("generation").prefetch_related("decisions").order_by("-generation", "position"):
        if (decision := latest_decision(draft)) is not None:
            decisions_by_writer.setdefault(draft.generation.writer, []).append(decision)
    return [_acceptance(writer, decisions) for writer, decisions in decisions_by_writer.items()]
