"""What became of generated questions: how many each filter took out, what people decided, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, OuterRef, Q, Subquery

from contrib.generation.models import DraftDecision, DraftQuestion, Generation, GenerationCall
from evaluation.models import Project
from evaluation.scoring.side_calls import spent_on
from review.statistics.agreement.bootstrap import clopper_pearson

Verb, Filter = DraftDecision.Verb, DraftQuestion.Filter


def decided(draft: DraftQuestion) -> DraftDecision | None:
    """The decision that counts; without a query where decisions are prefetched."""
    return max(draft.decisions.all(), key=lambda one: one.seq, default=None)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Of the questions that people decided on, the share they accepted, 0 to 1, with its exact 95% interval (Clopper
    and Pearson), as if questions were independent; ``edited`` are those they accepted with other words. ``share`` is
    ``None`` where nothing was decided."""

    writer: str
    decided: int
    accepted: int
    edited: int
    share: float | None
    low: float | None
    high: float | None


def _acceptance(writer: str, decisions: list[DraftDecision]) -> Acceptance:
    n, accepted = len(decisions), [one for one in decisions if one.verb == Verb.ACCEPTED]
    edited = sum(one.content is not None for one in accepted)
    if not n:
        return Acceptance(writer, 0, 0, 0, None, None, None)
    share = len(accepted) / n
    low, high = clopper_pearson(share, n)
    return Acceptance(writer, n, len(accepted), edited, share, low, high)


@dataclass(frozen=True, slots=True)
class Overview:
    """A generation as it stands. ``removed`` counts by filter; ``waiting`` are questions that passed and that nobody
    decided on; ``rejected`` and ``accepted`` include those that a filter had taken out; ``spent`` is in US dollars;
    ``calls`` are those that were made."""

    written: int
    removed: dict[str, int]
    waiting: int
    rejected: int
    acceptance: Acceptance
    calls: int
    spent: Decimal


def overview(generation: Generation) -> Overview:
    """Four queries."""
    drafts = list(generation.drafts.prefetch_related("decisions"))
    decisions = {draft.pk: one for draft in drafts if (one := decided(draft))}
    acceptance = _acceptance(generation.writer, list(decisions.values()))
    calls = GenerationCall.objects.filter(generation=generation)
    return Overview(
        written=len(drafts),
        removed=dict(Counter(draft.removed_by for draft in drafts if draft.removed_by)),
        waiting=sum(not draft.removed_by and draft.pk not in decisions for draft in drafts),
        rejected=sum(one.verb == Verb.REJECTED for one in decisions.values()),
        acceptance=acceptance,
        calls=calls.exclude(reply=None).count(),
        spent=spent_on(calls),
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """Of a generation in a list."""

    written: int = 0
    waiting: int = 0
    accepted: int = 0


def counts_of(generations: Iterable[Generation]) -> dict[int, Counts]:
    """By their keys, in one query; without those of which nothing is written yet."""
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
    return {pk: Counts(*counted) for pk, *counted in rows}


def acceptance_by_writer(project: Project) -> list[Acceptance]:
    """Of every version of the generator in a project, the newest first."""
    drafts = DraftQuestion.objects.filter(generation__corpus__project=project, decisions__isnull=False).distinct()
    found: dict[str, list[DraftDecision]] = {}
    for draft in drafts.select_related("generation").prefetch_related("decisions").order_by("-generation", "position"):
        if (one := decided(draft)) is not None:
            found.setdefault(draft.generation.writer, []).append(one)
    return [_acceptance(writer, decisions) for writer, decisions in found.items()]
