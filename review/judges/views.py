"""Views of the judge list, a judge and its card."""

from __future__ import annotations

import json

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get, signed_in_post
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.criteria.services import active_criteria_in
from evaluation.judging.probing import ProbeResult
from evaluation.messages.explanations import explain_refusal
from evaluation.models import JudgeVersion
from evaluation.scoring.adhoc import try_judge
from review.comparisons.trend import judge_records
from review.evidence.scorers import metric_titles
from review.judges.card import as_markdown, load_judge_card
from review.judges.pages import attacks_of, criterion_line, judge_card

PER_PAGE = 10
OF_PROJECT = "project_id"


@signed_in_get
def judge_list(request: HttpRequest) -> HttpResponse:
    """List judge versions, newest first, with active criteria."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).values_list("pk", flat=True))
    if not projects:
        raise PermissionDenied
    rows = JudgeVersion.objects.filter(project__in=projects).select_related("endpoint").order_by("-pk")
    page = _page(request)
    versions = list(rows[page * PER_PAGE : (page + 1) * PER_PAGE + 1])
    newer = f"?page={page - 1}" if page else ""
    older = f"?page={page + 1}" if len(versions) > PER_PAGE else ""
    context = {
        "judges": [judge_card(record) for record in judge_records(versions[:PER_PAGE])],
        "criteria": [criterion_line(event) for event in active_criteria_in(projects)],
        "newer": newer,
        "older": older,
    }
    return render(request, "review/judges/judges.html", context)


JUDGES = JudgeVersion.objects.select_related("endpoint")


@signed_in_get
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    return _judge_page(request, access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT))


@signed_in_post
def judge_try(request: HttpRequest, pk: int) -> HttpResponse:
    """Probe a judge as a run's preflight does, and show response format, reply and time."""
    judge = access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    if judge.endpoint is None:
        messages.error(request, gettext("Nothing to test: this judge calls no model."))
        return redirect("judge", pk)
    try:
        probe = try_judge(judge, judge.endpoint)
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("judge", pk)
    return _judge_page(request, judge, probe)


def _judge_page(request: HttpRequest, judge: JudgeVersion, probe: ProbeResult | None = None) -> HttpResponse:
    pk = judge.pk
    other_versions = (
        JudgeVersion.objects.filter(project=judge.project_id, name=judge.name).exclude(pk=pk).order_by("-version")
    )
    versions = [(version_id, f"v{version}") for version_id, version in other_versions.values_list("pk", "version")]
    (record,) = judge_records([judge])
    full_card = load_judge_card(judge, in_words=True) if judge.endpoint_id else None
    context = {
        "card": judge_card(record),
        "parameters": [(name, str(value)) for name, value in sorted(judge.params.items())],
        "versions": versions,
        "attacks": attacks_of(judge),
        "whole": full_card,
        "titles": metric_titles(full_card.metrics) if full_card else {},
        "tried": probe,
    }
    return render(request, "review/judges/judge.html", context)


@signed_in_get
def judge_card_file(request: HttpRequest, pk: int) -> HttpResponse:
    """Download a judge's card."""
    judge = access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    kinds = {"md": "text/markdown", "json": "application/json"}
    if (form := request.GET.get("format", "md")) not in kinds:
        raise Http404
    card = load_judge_card(judge)
    text = as_markdown(card) if form == "md" else json.dumps(card.to_dict(), ensure_ascii=False, indent=2)
    reply = HttpResponse(text, content_type=f"{kinds[form]}; charset=utf-8")
    reply.headers["Content-Disposition"] = f'attachment; filename="judge-{judge.pk}.{form}"'
    return reply


def _page(request: HttpRequest) -> int:
    return parse_int(request.GET.get("page", ""), 5) or 0
