"""Making a review queue from a run."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from evaluation import access
from evaluation.accounts.models import RoleGrant, User
from evaluation.accounts.roles import Action, Role
from evaluation.errors import Refused
from evaluation.messages import explain_refusal
from evaluation.runs.models import Run
from evaluation.scores.models import MetricDefinition, Score
from review.forms.queue import QueueForm
from review.models.queues import ReviewQueue
from review.pages.queue_new import PreviewCard, impossible, preview_card, queue_new_page
from review.queues.making import make_queue
from review.queues.preview import queue_preview
from review.views.people import person


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def queue_new(request: HttpRequest) -> HttpResponse:
    """The form, and the queue it makes."""
    run = _run(request)
    posted = request.method == "POST"
    form = _form(run, request.POST if posted else None)
    error = ""
    if posted and form.is_valid():
        try:
            queue = _make(form, person(request))
        except Refused as refused:
            error = explain_refusal(refused)
        else:
            messages.success(request, gettext("The queue is open. Its members see it on their start page."))
            return redirect("queue", queue.pk)
    status = 409 if error else (400 if form.errors else 200)
    return render(request, "review/queue_new.html", {"page": queue_new_page(run, form, error)}, status=status)


@login_required
@require_safe
def preview(request: HttpRequest) -> HttpResponse:
    """The preview fragment for the form as it stands."""
    run = _run(request)
    return render(request, "review/_queue_preview.html", {"preview": _preview(_form(run, request.GET))})


def _preview(form: QueueForm) -> PreviewCard:
    if not form.is_valid():
        return impossible(gettext("Fill in the form to see how much work this is."))
    try:
        found = queue_preview(
            [form.run],
            form.chosen_metrics,
            strategy=form.cleaned_data["strategy"],
            size=form.cleaned_data["size"],
            reviewers=len(form.people),
            reviews_needed=form.cleaned_data["reviews_needed"],
        )
    except Refused as refused:
        return impossible(explain_refusal(refused))
    return preview_card(found)


def _run(request: HttpRequest) -> Run:
    named = request.POST.get("run", "") or request.GET.get("run", "")
    if not (named.isascii() and named.isdigit()):
        raise Http404
    return access.fetch(
        Run.objects.select_related("answer_set__question_set"), request.user, Action.MANAGE_REVIEW, named
    )


def _form(run: Run, data: QueryDict | None) -> QueueForm:
    scored = Score.objects.filter(run=run, metric=OuterRef("pk"))
    metrics = MetricDefinition.objects.filter(Exists(scored)).exclude(scale="seconds").order_by("-kind", "name")
    grants = RoleGrant.objects.filter(project_id=run.project_id, user__is_active=True)
    people = User.objects.filter(pk__in=grants.values("user")).order_by("username")
    experts = grants.filter(role=Role.REVIEWER).values_list("user_id", flat=True)
    return QueueForm(data, run=run, metrics=list(metrics), people=list(people), experts=set(experts))


def _make(form: QueueForm, by: User) -> ReviewQueue:
    said = form.cleaned_data
    return make_queue(
        form.run,
        name=said["name"],
        metrics=said["metrics"],
        strategy=said["strategy"],
        size=said["size"],
        reviewers=form.people,
        reviews_needed=said["reviews_needed"],
        mode=said["mode"],
        reveal=said["reveal"],
        reveal_threshold=said["reveal_threshold"],
        guideline=said["guideline"],
        hide_system=not said["show_system"],
        by=by,
    )
