"""Judge list, a judge's page and its card."""

from __future__ import annotations

import json

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.criteria.services import active_in
from evaluation.judging.probing import Probed
from evaluation.messages.sentences import explain_refusal
from evaluation.models import JudgeVersion
from evaluation.scoring.aside import asked_once
from review.comparisons.trend import judge_records
from review.evidence.scorers import titles_of
from review.judges.pages import attacks_of, criterion_line, judge_card
from review.judges.prompts import as_markdown, judge_prompts

PER_PAGE = 10
OF_PROJECT = "project_id"


@signed_in_get
def judge_list(request: HttpRequest) -> HttpResponse:
    """Every judge version, the newest first, with the criteria in force."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).values_list("pk", flat=True))
    if not projects:
        raise PermissionDenied
    rows = JudgeVersion.objects.filter(project__in=projects).select_related("endpoint").order_by("-pk")
    at = _page(request)
    found = list(rows[at * PER_PAGE : (at + 1) * PER_PAGE + 1])
    newer = f"?page={at - 1}" if at else ""
    older = f"?page={at + 1}" if len(found) > PER_PAGE else ""
    shown = {
        "judges": [judge_card(one) for one in judge_records(found[:PER_PAGE])],
        "criteria": [criterion_line(event) for event in active_in(projects)],
        "newer": newer,
        "older": older,
    }
    return render(request, "review/judges/judges.html", shown)


JUDGES = JudgeVersion.objects.select_related("endpoint")
TRY_SECONDS = 10.0  # until the endpoint has a place for somebody who waits


@signed_in_get
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    """One judge version."""
    return _judge_page(request, access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT))


@signed_in_post
def judge_try(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a judge as every run begins: the page shows how it can be asked, what it said, and how long that took."""
    found = access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    if found.endpoint is None:
        messages.error(request, gettext("There is nobody to ask: it calls no model."))
        return redirect("judge", pk)
    try:
        tried = asked_once(found, found.endpoint, TRY_SECONDS)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("judge", pk)
    return _judge_page(request, found, tried)


def _judge_page(request: HttpRequest, found: JudgeVersion, tried: Probed | None = None) -> HttpResponse:
    pk = found.pk
    others = JudgeVersion.objects.filter(project=found.project_id, name=found.name).exclude(pk=pk).order_by("-version")
    versions = [(other, f"v{version}") for other, version in others.values_list("pk", "version")]
    (record,) = judge_records([found])
    whole = judge_prompts(found, in_words=True) if found.endpoint_id else None
    shown = {
        "card": judge_card(record),
        "parameters": [(name, str(value)) for name, value in sorted(found.params.items())],
        "versions": versions,
        "attacks": attacks_of(found),
        "whole": whole,
        "titles": titles_of(whole.metrics) if whole else {},
        "tried": tried,
    }
    return render(request, "review/judges/judge.html", shown)


@signed_in_get
def judge_card_file(request: HttpRequest, pk: int) -> HttpResponse:
    """The card of a judge version as a file."""
    found = access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    kinds = {"md": "text/markdown", "json": "application/json"}
    if (form := request.GET.get("format", "md")) not in kinds:
        raise Http404
    card = judge_prompts(found)
    text = as_markdown(card) if form == "md" else json.dumps(card.to_dict(), ensure_ascii=False, indent=2)
    reply = HttpResponse(text, content_type=f"{kinds[form]}; charset=utf-8")
    reply.headers["Content-Disposition"] = f'attachment; filename="judge-{found.pk}.{form}"'
    return reply


def _page(request: HttpRequest) -> int:
    return whole_number(request.GET.get("page", ""), 5) or 0
