"""From a dispute to its cause: a new version of the rubric, or of the question set."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from evaluation.core.errors import Refused
from evaluation.wording.messages import explain, explain_refusal
from review.decisions.amending import amend_question, amend_rubric
from review.queues.access import case_item
from review.ratings.submitting import metrics_of
from review.web.forms.adjudication import read_anchors, read_references
from review.web.pages.amending import AmendQuestionPage, AmendRubricPage, question_page, rubric_page
from review.web.views.people import person


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """Better words or references for the question, as the next version of its set."""
    item = case_item(request.user, pk)
    asked = item.answer.question
    page: AmendQuestionPage = question_page(item, asked.read())
    if request.method != "POST":
        return render(request, "review/amend_question.html", {"page": page})
    words, references = request.POST.get("question", ""), read_references(request.POST)
    try:
        made = amend_question(asked, text=words, references=references, by=person(request))
    except Refused as refused:
        page = question_page(item, asked.read(), words, references, explain_refusal(refused))
        return render(request, "review/amend_question.html", {"page": page}, status=409)
    messages.success(request, explain(made.note))
    return redirect("adjudication-case", item.pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rubric(request: HttpRequest, pk: int, metric: str) -> HttpResponse:
    """Better words for a metric's question and levels, as the next version of the rubric."""
    item = case_item(request.user, pk)
    row = next((one for one in metrics_of(item.queue) if one.metric.name == metric), None)
    if row is None or row.rubric_version is None:
        raise Http404
    pinned = row.rubric_version
    asked = pinned.rubric.metric(metric)
    page: AmendRubricPage = rubric_page(item, pinned, asked)
    if request.method != "POST":
        return render(request, "review/amend_rubric.html", {"page": page})
    texts = read_anchors(request.POST, [line.name for line in page.lines])
    words = request.POST.get("question", "")
    try:
        made = amend_rubric(pinned, metric, question=words, texts=texts, by=person(request))
    except Refused as refused:
        page = rubric_page(item, pinned, asked, words, texts, explain_refusal(refused))
        return render(request, "review/amend_rubric.html", {"page": page}, status=409)
    if made.created:
        text = gettext("%(version)s is kept. What was decided before stays as it is.") % {"version": made.version}
    else:
        text = gettext("%(version)s has these words already.") % {"version": made.version}
    messages.success(request, text)
    return redirect("adjudication-case", item.pk)
