"""Making a review queue from a run."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.signed_in import person, signed_in_form, signed_in_get
from evaluation.core.errors import Refused
from evaluation.core.roles import Action, Role
from evaluation.core.whole_numbers import whole_number
from evaluation.models import MetricDefinition, RoleGrant, Run, Score, User
from evaluation.wording.messages import explain_refusal
from review.models import ReviewQueue
from review.models.queue_spec import QueueSpec
from review.plans.design import Design, expected_interval
from review.plans.goals import Staff, goals
from review.plans.several import designs, told
from review.plans.wording import expected_card, goal_rows
from review.queues.making import make_queue
from review.queues.preview import queue_preview
from review.queues.sharing import answers_to
from review.statistics.sampling.member import DrawParams, Strategy
from review.web.forms.queue import QueueForm
from review.web.pages.queues import NewQueuePage, PreviewCard, preview_card

MOST_RUNS = 20


@signed_in_form
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
    return render(request, "review/queue_new.html", {"page": NewQueuePage(run, form, error)}, status=status)


@signed_in_get
def preview(request: HttpRequest) -> HttpResponse:
    """The preview fragment for the form as it stands."""
    run = _run(request)
    return render(request, "review/_queue_preview.html", {"preview": _preview(_form(run, request.GET))})


def _preview(form: QueueForm) -> PreviewCard:
    if not form.is_valid():
        return PreviewCard(gettext("Fill in the form to see how much work this is."))
    said, runs, metrics, spec = form.cleaned_data, form.chosen_runs, form.chosen_metrics, form.spec
    planned = designs(runs, metrics, spec.size, form.judge_off)
    try:
        params = _told(form, spec, planned)
        found = queue_preview(runs, metrics, spec, reviewers=len(form.people), params=params)
    except Refused as refused:
        return PreviewCard(explain_refusal(refused))
    neyman = spec.strategy == Strategy.STRATIFIED
    cards = [
        (str(run), expected_card(expected_interval(one, found.by_run[run.pk]), neyman=neyman and one.neyman))
        for run, one in zip(runs, planned.values(), strict=True)
    ]
    staff = Staff(len(form.people), spec.ratings_each, found.pace)
    alone = goal_rows(goals(planned[form.run.pk], staff, said["width"], said["difference"])) if len(runs) == 1 else ()
    return preview_card(found, cards, alone)


def _told(form: QueueForm, spec: QueueSpec, planned: Mapping[int, Design]) -> dict[int, DrawParams]:
    picked = spec.strategy == Strategy.HAND_PICKED
    keys = answers_to(form.chosen_runs, form.cleaned_data["questions"]) if picked else None
    return told(planned, spec, keys)


def _run(request: HttpRequest) -> Run:
    named = whole_number(request.POST.get("run", "") or request.GET.get("run", ""))
    if named is None:
        raise Http404
    return access.fetch(
        Run.objects.select_related("answer_set__question_set", Run.NAMED_BY), request.user, Action.MANAGE_REVIEW, named
    )


def _form(run: Run, data: QueryDict | None) -> QueueForm:
    scored = Score.objects.filter(run=run, metric=OuterRef("pk"))
    metrics = MetricDefinition.objects.filter(Exists(scored)).exclude(scale="seconds").order_by("-kind", "name")
    grants = RoleGrant.objects.filter(project_id=run.project_id, user__is_active=True)
    people = User.objects.filter(pk__in=grants.values("user")).order_by("username")
    experts = grants.filter(role=Role.REVIEWER).values_list("user_id", flat=True)
    others = Run.objects.filter(project_id=run.project_id, answer_set__question_set_id=run.answer_set.question_set_id)
    others = (
        others.select_related(Run.NAMED_BY)
        .filter(Exists(Score.objects.filter(run=OuterRef("pk"))))
        .exclude(pk=run.pk)
        .order_by("-pk")
    )
    return QueueForm(
        data, run=run, others=list(others[:MOST_RUNS]), metrics=list(metrics), people=list(people), experts=set(experts)
    )


def _make(form: QueueForm, by: User) -> ReviewQueue:
    runs, metrics, spec = form.chosen_runs, form.chosen_metrics, form.spec
    return make_queue(
        runs,
        spec,
        metrics=[metric.name for metric in metrics],
        reviewers=form.people,
        sharing=form.sharing,
        params=_told(form, spec, designs(runs, metrics, spec.size, form.judge_off)),
        by=by,
    )
