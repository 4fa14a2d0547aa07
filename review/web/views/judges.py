"""Judges and criteria of one's projects, for those who evaluate with them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.core.whole_numbers import whole_number
from evaluation.criteria.active_criteria import active_in
from evaluation.models import JudgeVersion
from review.comparisons.judge_records import judge_records
from review.web.pages.judges import judge_page, judges_page

PER_PAGE = 10
OF_PROJECT = "project_id"


@login_required
@require_safe
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
    page = judges_page(judge_records(found[:PER_PAGE]), active_in(projects), newer=newer, older=older)
    return render(request, "review/judges.html", {"page": page})


@login_required
@require_safe
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    """One judge version."""
    rows = JudgeVersion.objects.select_related("endpoint")
    found = access.fetch(rows, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    others = JudgeVersion.objects.filter(project=found.project_id, name=found.name).exclude(pk=pk).order_by("-version")
    versions = [(other, f"v{version}") for other, version in others.values_list("pk", "version")]
    (record,) = judge_records([found])
    return render(request, "review/judge.html", {"page": judge_page(record, versions)})


def _page(request: HttpRequest) -> int:
    return whole_number(request.GET.get("page", ""), 5) or 0
