"""A lead's list of disputes, a case, what is decided there, and from a dispute to its cause: a new version of the
rubric, or of the question set."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext

from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.errors import Refused
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import User
from review.decisions.cases import open_cases, show_case
from review.decisions.deciding import adjudicate, amend_question, amend_rubric, rule_on
from review.decisions.pages import Entered, case_page, case_rows, rubric_lines
from review.models import ReviewItem
from review.queues.access import case_item, cases_for_lead, event_for_lead
from review.ratings.forms import Decided, in_words, read_references, read_verdicts
from review.ratings.submitting import asked_of

NOTHING: Entered = MappingProxyType({})


@signed_in_get
def adjudication(request: HttpRequest) -> HttpResponse:
    """What waits for a decision, the most pressing first."""
    me = person(request)
    return render(
        request, "review/decisions/adjudication.html", {"cases": case_rows(open_cases(cases_for_lead(me)), me)}
    )


@signed_in_get
def case(request: HttpRequest, pk: int) -> HttpResponse:
    """One case, names and judge hidden until it is decided."""
    return _page(request, case_item(request.user, pk))


@signed_in_post
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the values that were chosen; of two leads who decide at once one is told."""
    item = case_item(request.user, pk)
    metrics = asked_of(item)
    verdicts = read_verdicts(request.POST, metrics)
    try:
        if not verdicts:
            raise Refused("nothing_decided")
        _adjudicate(item, verdicts.values(), person(request))
    except Refused as refused:
        entered = {name: {"value": one.entered, "reason": one.reason} for name, one in verdicts.items()}
        error = in_words(refused, [row.metric for row in metrics])
        return _page(request, item, entered=entered, error=error, status=409)
    messages.success(request, gettext("Decided. Your value counts from now on; the ratings stay."))
    return redirect("adjudication-case", item.pk)


@transaction.atomic
def _adjudicate(item: ReviewItem, verdicts: Iterable[Decided], by: User) -> None:
    """All of the verdicts or none."""
    for one in verdicts:
        adjudicate(item.answer, one.metric, value=one.value, label=one.label, reason=one.reason, seen=one.seen, by=by)


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
    page = case_page(item, show_case(item, me, get_language() or "en"), me, entered, error)
    return render(request, "review/decisions/case.html", {"page": page}, status=status)


@signed_in_form
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """Better words or references for the question, as the next version of its set."""
    item = case_item(request.user, pk)
    asked = item.answer.question
    stored, error = asked.read(), ""
    words, references = stored.text, list(stored.references)
    if request.method == "POST":
        words, references = request.POST.get("question", ""), read_references(request.POST)
        try:
            made = amend_question(asked, text=words, references=references, by=person(request))
        except Refused as refused:
            error = explain_refusal(refused)
        else:
            messages.success(request, explain(made.note))
            return redirect("adjudication-case", item.pk)
    shown = {"item": item, "question": words, "references": [*references, ""], "error": error}
    return render(request, "review/decisions/amend_question.html", shown, status=409 if error else 200)


@signed_in_form
def rubric(request: HttpRequest, pk: int, metric: str) -> HttpResponse:
    """Better words for a metric's question and levels, as the next version of the rubric."""
    item = case_item(request.user, pk)
    row = next((one for one in asked_of(item) if one.metric.name == metric), None)
    if row is None or row.rubric_version is None:
        raise Http404
    pinned = row.rubric_version
    asked = pinned.rubric.metric(metric)
    words, lines, error = asked.question.strip(), rubric_lines(asked), ""
    if request.method == "POST":
        words = request.POST.get("question", "")
        lines = [(name, request.POST.get(f"text:{name}", "")) for name, _text in lines]
        try:
            project = item.queue.project
            made = amend_rubric(pinned, metric, question=words, texts=dict(lines), project=project, by=person(request))
        except Refused as refused:
            error = explain_refusal(refused)
        else:
            text = gettext("%(version)s has these words already.")
            if made.created:
                text = gettext(
                    "%(version)s is kept as a draft: judges work by it in runs that name it, and in others once a lead "
                    "has activated it. What was decided before stays as it is."
                )
            messages.success(request, text % {"version": made.version})
            return redirect("adjudication-case", item.pk)
    shown = {"item": item, "version": pinned, "question": words, "lines": lines, "error": error}
    return render(request, "review/decisions/amend_rubric.html", shown, status=409 if error else 200)
