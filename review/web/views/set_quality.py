"""The page that shows how good the questions of a set are."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.core.roles import Action
from evaluation.models import QuestionSet
from review.comparisons.set_quality import set_quality

MOST_SHOWN = 50


@signed_in_get
def set_quality_page(request: HttpRequest, pk: int) -> HttpResponse:
    """How good the questions of a set are. Of scores it tells those of rules alone, and what experts said
    of expected answers."""
    found = access.fetch(QuestionSet.objects.all(), request.user, Action.VIEW, pk)
    shown = {"found": found, "quality": set_quality(found), "most": MOST_SHOWN}
    return render(request, "review/set_quality.html", shown)
