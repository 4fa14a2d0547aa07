"""Views of disputes: the list, a case, its decision, and amendments of its question or rubric."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext

from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain, explain_refusal
from evaluation.models import User
from review.decisions.adjudication import adjudicate, amend_question, amend_rubric, rule_on
from review.decisions.cases import open_cases, show_case
from review.decisions.pages import EnteredDecisions, case_page, case_rows, rubric_lines
from review.models import ReviewItem
from review.queues.access import cases_for_lead, event_for_lead, item_to_adjudicate
from review.ratings.forms import DecisionInput, read_decisions, read_references, refusal_sentence
from review.ratings.submitting import item_metrics

NO_INPUT: EnteredDecisions = MappingProxyType({})


@signed_in_get
def adjudication(request: HttpRequest) -> HttpResponse:
    """List open cases, the most pressing first."""
    lead = signed_in_user(request)
    return render(
        request, "review/decisions/adjudication.html", {"cases": case_rows(open_cases(cases_for_lead(lead)), lead)}
    )


@signed_in_get
def case(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a case; names and judge stay hidden until it is decided."""
    return _render_case(request, item_to_adjudicate(request.user, pk))


@signed_in_post
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the chosen values. A concurrent decision by another lead is reported."""
    item = item_to_adjudicate(request.user, pk)
    metrics = item_metrics(item)
    verdicts = read_decisions(request.POST, metrics)
    try:
        if not verdicts:
            raise DomainError("nothing_decided")
        _adjudicate(item, verdicts.values(), signed_in_user(request))
    except DomainError as refusal:
        decision_input = {
            name: {"value": verdict.entered, "reason": verdict.reason} for name, verdict in verdicts.items()
        }
        error = refusal_sentence(refusal, [row.metric for row in metrics])
        return _render_case(request, item, decision_input=decision_input, error=error, status=409)
    messages.success(request, gettext("Decided. Your value now counts. The ratings are kept."))
    return redirect("adjudication-case", item.pk)


@transaction.atomic
def _adjudicate(item: ReviewItem, verdicts: Iterable[DecisionInput], by: User) -> None:
    """Store all verdicts or none."""
    for verdict in verdicts:
        adjudicate(
            item.answer,
            verdict.metric,
            value=verdict.value,
            label=verdict.label,
            reason=verdict.reason,
            seen=verdict.seen_seq,
            by=by,
        )


@signed_in_post
def rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Uphold or dismiss a flag or an escalation."""
    event = event_for_lead(request.user, pk)
    item = event.assignment.item
    try:
        rule_on(
            event,
            upheld=request.POST.get("ruling") == "uphold",
            reason=request.POST.get("reason", ""),
            by=signed_in_user(request),
        )
    except DomainError as refusal:
        return _render_case(
            request, item_to_adjudicate(request.user, item.pk), error=explain_refusal(refusal), status=409
        )
    messages.success(request, gettext("Decided."))
    return redirect("adjudication-case", item.pk)


def _render_case(
    request: HttpRequest,
    item: ReviewItem,
    *,
    decision_input: EnteredDecisions = NO_INPUT,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    lead = signed_in_user(request)
    page = case_page(item, show_case(item, lead, get_language() or "en"), lead, decision_input, error)
    return render(request, "review/decisions/case.html", {"page": page}, status=status)


@signed_in_form
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """Amend the question's text and references as the next version of its set."""
    item = item_to_adjudicate(request.user, pk)
    question_row = item.answer.question
    stored, error = question_row.read(), ""
    question_text, references = stored.text, list(stored.references)
    if request.method == "POST":
        question_text, references = request.POST.get("question", ""), read_references(request.POST)
        try:
            imported = amend_question(
                question_row, text=question_text, references=references, by=signed_in_user(request)
            )
        except DomainError as refusal:
            error = explain_refusal(refusal)
        else:
            messages.success(request, explain(imported.note))
            return redirect("adjudication-case", item.pk)
    context = {"item": item, "question": question_text, "references": [*references, ""], "error": error}
    return render(request, "review/decisions/amend_question.html", context, status=409 if error else 200)


@signed_in_form
def rubric(request: HttpRequest, pk: int, metric: str) -> HttpResponse:
    """Amend the texts of a metric as the next version of the rubric."""
    item = item_to_adjudicate(request.user, pk)
    row = next((queue_metric for queue_metric in item_metrics(item) if queue_metric.metric.name == metric), None)
    if row is None or row.rubric_version is None:
        raise Http404
    rubric_version = row.rubric_version
    rubric_metric = rubric_version.rubric.metric(metric)
    question_text, lines, error = rubric_metric.question.strip(), rubric_lines(rubric_metric), ""
    if request.method == "POST":
        question_text = request.POST.get("question", "")
        lines = [(name, request.POST.get(f"text:{name}", "")) for name, _text in lines]
        try:
            project = item.queue.project
            amended = amend_rubric(
                rubric_version,
                metric,
                question=question_text,
                texts=dict(lines),
                project=project,
                by=signed_in_user(request),
            )
        except DomainError as refusal:
            error = explain_refusal(refusal)
        else:
            message = gettext("%(version)s already has this text.")
            if amended.created:
                message = gettext(
                    "%(version)s was saved as a draft. Runs that name it use it. Other runs use it once a lead "
                    "activates it. Earlier decisions are kept."
                )
            messages.success(request, message % {"version": amended.version})
            return redirect("adjudication-case", item.pk)
    context = {"item": item, "version": rubric_version, "question": question_text, "lines": lines, "error": error}
    return render(request, "review/decisions/amend_rubric.html", context, status=409 if error else 200)
