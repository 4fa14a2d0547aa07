"""What a case's page is made of: read once, the judge and the names only where everything in it was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.accounts.models import User
from review.adjudication.cases import Case, case_of
from review.exposures import expose
from review.models.queues import ReviewItem
from review.models.ratings import Override, SuggestedAnswer
from review.overrides import standing
from review.queues.card import CardMetric, Passage, card_metrics, passages_of
from review.queues.claims import Claim, claims_on_card
from review.ratings import metrics_of
from review.reveals import JudgeSaid, said_of_item


@dataclass(frozen=True, slots=True)
class CaseShown:
    """A case with its texts. ``decisions`` and ``adjudicated`` are by metric. It is ``over`` when nothing is open and
    something was adjudicated; until then nobody is named and ``said`` is empty."""

    case: Case
    metrics: tuple[tuple[int, CardMetric], ...]
    decisions: Mapping[int, Sequence[Override]]
    adjudicated: Mapping[int, Override]
    over: bool
    said: Mapping[int, JudgeSaid]
    claims: tuple[Claim, ...]
    passages: tuple[Passage, ...] | None
    suggestions: tuple[str, ...]


def show_case(item: ReviewItem, user: User, language: str) -> CaseShown:
    """The case for a lead. Where the judge is shown, that is recorded."""
    case = case_of(item)
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
        said=said,
        claims=claims_on_card(item, judged=False),
        passages=passages_of(item.answer) if item.answer.retrieves else None,
        suggestions=tuple(texts.values_list("text", flat=True)[:20]),
    )
