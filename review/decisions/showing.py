"""What a case's page is made of: read once, the judge and the names only where everything in it was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.models import User
from review.decisions.cases import Case, case_of
from review.evidence.decisions import standing
from review.evidence.exposures import expose
from review.models import Override, ReviewItem, ReviewQueue, SuggestedAnswer
from review.ratings.card import CardMetric, Passage, card_metrics, passages_of
from review.ratings.claims import Claim, claims_on_card
from review.ratings.reveals import JudgeSaid, said_of_item
from review.ratings.settling import PASSED, RATED
from review.ratings.submitting import metrics_of


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
    rows = metrics_of(item.queue)
    decisions: dict[int, list[Override]] = {}
    for row in Override.objects.filter(answer=item.answer_id).select_related("by", "metric").order_by("seq"):
        decisions.setdefault(row.metric_id, []).append(row)
    stand = {metric: top for metric, several in decisions.items() if (top := standing(several)) is not None}
    adjudicated = {metric: top for metric, top in stand.items() if top.kind == Override.Kind.ADJUDICATION}
    over = bool(adjudicated) and not case.is_open
    said: dict[int, JudgeSaid] = {}
    if over:
        expose(user, item.answer, "adjudication")
        said = {one.metric.pk: one for one in said_of_item(item)}
    texts = SuggestedAnswer.objects.filter(assignment__item__answer=item.answer_id).order_by("-pk")
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
