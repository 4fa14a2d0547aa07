"""Creation of a queue of pairs from the comparison page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_post, signed_in_user
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action, Role
from evaluation.messages.explanations import explain_refusal
from evaluation.models import RoleGrant, Run, User
from review.releases.forms import PairQueueForm
from review.releases.services import make_pair_queue


def pair_queue_form(project_id: int, data: QueryDict | None = None, size: int = 0) -> PairQueueForm:
    """Form of a queue of pairs with the people of a project. Two queries."""
    grants = RoleGrant.objects.filter(project_id=project_id, user__is_active=True)
    people = list(User.objects.filter(pk__in=grants.values("user")).order_by("username"))
    experts = set(grants.filter(role=Role.REVIEWER).values_list("user_id", flat=True))
    return PairQueueForm(data, people=people, experts=experts, size=size)


@signed_in_post
def pair_queue_new(request: HttpRequest, pk: int, baseline_pk: int) -> HttpResponse:
    """Create a queue of pairs of two runs, or return to the comparison with the reason against it."""
    run, baseline = (
        access.fetch(Run.objects.select_related("answer_set"), request.user, Action.MANAGE_REVIEW, key)
        for key in (pk, baseline_pk)
    )
    form = pair_queue_form(run.project_id, request.POST)
    if form.is_valid():
        values = form.cleaned_data
        try:
            queue = make_pair_queue(
                run,
                baseline,
                values["questions"],
                form.people,
                reviews_needed=values["reviews_needed"],
                looks=values["looks"],
                by=signed_in_user(request),
            )
        except DomainError as refusal:
            messages.error(request, explain_refusal(refusal))
        else:
            messages.success(request, gettext("Queue opened. Reviewers see it on their home page."))
            return redirect("queue", queue.pk)
    else:
        messages.error(request, form.errors_sentence)
    return redirect(f"{reverse('run-compare')}?runs={baseline.pk},{run.pk}")
