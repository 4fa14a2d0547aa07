"""A lead's list of disputes, a case, and what is decided there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.core.errors import Refused
from evaluation.models import User
from evaluation.wording.categories import category_name
from evaluation.wording.messages import explain_refusal
from review.decisions.cases import open_cases
from review.decisions.deciding import adjudicate, rule_on
from review.decisions.showing import show_case
from review.evidence.answers import REMOVING
from review.models import QueueMetric, ReviewItem
from review.queues.access import case_item, cases_for_lead, event_for_lead
from review.ratings.submitting import metrics_of
from review.web.forms.adjudication import Verdict, read_verdicts
from review.web.pages.adjudication import (
    WHY,
    AdjudicationPage,
    CasePage,
    case_passages,
    case_rows,
    case_texts,
    metric_case,
    raised,
    texts,
)
from review.web.pages.refusals import in_words
from review.web.pages.review_card import text
from review.web.views.people import person

Entered = Mapping[str, Mapping[str, str]]
NOTHING: Entered = MappingProxyType({})


@login_required
@require_safe
def adjudication(request: HttpRequest) -> HttpResponse:
    """What waits for a decision, the most pressing first."""
    me = person(request)
    rows = case_rows(open_cases(cases_for_lead(me)), me)
    return render(request, "review/adjudication.html", {"page": AdjudicationPage(rows)})


@login_required
@require_safe
def case(request: HttpRequest, pk: int) -> HttpResponse:
    """One case, names and judge hidden until it is decided."""
    return _page(request, case_item(request.user, pk))


@login_required
@require_POST
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the values that were chosen; of two leads who decide at once one is told."""
    item = case_item(request.user, pk)
    metrics = metrics_of(item.queue)
    verdicts = read_verdicts(request.POST, metrics)
    try:
        if not verdicts:
            raise Refused("nothing_decided")
        _adjudicate(item, metrics, verdicts, person(request))
    except Refused as refused:
        entered = {name: {"value": one.entered, "reason": one.reason} for name, one in verdicts.items()}
        error = in_words(refused, [row.metric for row in metrics])
        return _page(request, item, entered=entered, error=error, status=409)
    messages.success(request, gettext("Decided. Your value counts from now on; the ratings stay."))
    return redirect("adjudication-case", item.pk)


@transaction.atomic
def _adjudicate(item: ReviewItem, metrics: Sequence[QueueMetric], verdicts: Mapping[str, Verdict], by: User) -> None:
    """All of the verdicts or none."""
    for row in metrics:
        if (one := verdicts.get(row.metric.name)) is not None:
            value, label, reason, seen = one.value, one.label, one.reason, one.seen
            adjudicate(item.answer, row.metric, value=value, label=label, reason=reason, seen=seen, by=by)


@login_required
@require_POST
def rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Uphold or dismiss a flag or an escalation."""
    event = event_for_lead(request.user, pk)
    item = event.assignment.item
    try:
        rule_on(
            event,
            upheld=request.POST.get("ruling") == "uphold",
            reason=request.POST.get("reason", ""),
            by=person(request),
        )
    except Refused as refused:
        return _page(request, case_item(request.user, item.pk), error=explain_refusal(refused), status=409)
    messages.success(request, gettext("Decided."))
    return redirect("adjudication-case", item.pk)


def _page(
    request: HttpRequest, item: ReviewItem, *, entered: Entered = NOTHING, error: str = "", status: int = 200
) -> HttpResponse:
    me = person(request)
    shown = show_case(item, me, get_language() or "en")
    question = item.answer.question.read()
    page = CasePage(
        item_id=item.pk,
        answer_id=item.answer_id,
        run_id=item.run_id,
        queue_name=item.queue.name,
        why=tuple(str(WHY[reason]) for reason in shown.case.why),
        category=category_name(question.category),
        question=text(question.text),
        answer=case_texts(item.answer.text, shown.claims),
        references=texts(question.references),
        contexts=case_passages(shown.passages),
        suggestions=texts(shown.suggestions),
        metrics=tuple(
            metric_case(
                metric,
                metric_id,
                shown.case,
                shown.decisions.get(metric_id, ()),
                shown.adjudicated.get(metric_id),
                shown.said.get(metric_id),
                me.pk,
                shown.over,
                entered.get(metric.name, {}),
            )
            for metric_id, metric in shown.metrics
        ),
        raised=tuple(raised(event, me.pk, REMOVING) for event in shown.case.events),
        is_open=shown.case.is_open,
        to_rate=shown.to_rate,
        error=error,
    )
    return render(request, "review/case.html", {"page": page}, status=status)
