"""Making a review queue from a run: the form, what it would ask of people and give, and the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext

from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action, Role
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_refusal
from evaluation.models import MetricDefinition, RoleGrant, Run, Score, User
from review.models import ReviewQueue
from review.models.queue_spec import QueueSpec
from review.plans.ahead import ExpectedCard, GoalRow, Staff, expected_card, goal_rows, goals
from review.plans.design import Design, designs, expected_interval, told
from review.queues.making import make_queue
from review.queues.preview import QueuePreview, queue_preview
from review.queues.sharing import answers_to
from review.statistics.correction.frame import LEAST_LABELS
from review.statistics.sampling.member import DrawParams, Strategy
from review.web.forms.queue import QueueForm

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
    return render(request, "review/queue_new.html", {"run": run, "form": form, "error": error}, status=status)


@signed_in_get
def preview(request: HttpRequest) -> HttpResponse:
    """The preview fragment for the form as it stands."""
    run = _run(request)
    return render(request, "review/_queue_preview.html", {"preview": _preview(_form(run, request.GET))})


class PreviewCard(NamedTuple):
    """What the queue would be, in words; ``problem`` instead where it cannot be made like this. ``expected`` is for a
    single run; ``by_run`` has the half-width for each of several, empty where it cannot be told. ``asked`` says which
    criteria an answer gets; ``enough`` how many answers it takes until every part has the ratings a correction needs, 0
    where these do. ``unrated`` are the judged parts of the overall score that nobody would rate, with their weight:
    title and percent."""

    problem: str = ""
    found: QueuePreview | None = None
    takes: str = ""
    expected: ExpectedCard | None = None
    by_run: Sequence[tuple[str, str]] = ()
    goals: Sequence[GoalRow] = ()
    asked: str = ""
    enough: int = 0
    unrated: Sequence[tuple[str, str]] = ()


def _preview(form: QueueForm) -> PreviewCard:
    if not form.is_valid():
        return PreviewCard(gettext("Fill in the form to see how much work this is."))
    said, runs, spec = form.cleaned_data, form.chosen_runs, form.spec
    try:
        metrics = form.chosen_metrics(spec)
        planned = designs(runs, metrics, spec.size, form.judge_off)
        params = _told(form, spec, planned)
        found = queue_preview(runs, metrics, spec, reviewers=len(form.people), params=params)
    except Refused as refused:
        return PreviewCard(explain_refusal(refused))
    neyman, turns = spec.strategy == Strategy.STRATIFIED, found.in_turn
    share = spec.share_asked(len(metrics))
    cards = [
        (str(run), expected_card(expected_interval(one, found.by_run[run.pk], share), neyman=neyman and one.neyman))
        for run, one in zip(runs, planned.values(), strict=True)
    ]
    staff = Staff(len(form.people), spec.ratings_each, found.pace)
    alone = (
        goal_rows(goals(planned[form.run.pk], staff, said["width"], said["difference"], share))
        if len(runs) == 1
        else ()
    )
    several = len(cards) > 1
    return PreviewCard(
        found=found,
        takes=numbers.about(max(found.seconds_each, 60.0)),
        expected=None if several else cards[0][1],
        by_run=[(name, card.half_width if card else "") for name, card in cards] if several else (),
        goals=alone,
        asked=_asked(metrics, found),
        enough=turns.enough(spec.size) if turns and turns.labels < LEAST_LABELS else 0,
        unrated=form.unrated([one for one in metrics if not (turns and one.pk in turns.rare)]),
    )


def _asked(metrics: Sequence[MetricDefinition], found: QueuePreview) -> str:
    """What an answer is asked."""
    language = get_language() or "en"
    titles = ", ".join(metric.title.get(language) or metric.name for metric in metrics)
    if turns := found.in_turn:
        said = gettext("Each answer is asked %(each)d of %(count)d criteria, in turn: %(titles)s.")
        return said % {"each": turns.each, "count": len(metrics), "titles": titles}
    return gettext("Each answer is asked: %(titles)s.") % {"titles": titles}


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
    runs, spec = form.chosen_runs, form.spec
    metrics = form.chosen_metrics(spec)
    return make_queue(
        runs,
        spec,
        metrics=[metric.name for metric in metrics],
        reviewers=form.people,
        sharing=form.sharing,
        params=_told(form, spec, designs(runs, metrics, spec.size, form.judge_off)),
        by=by,
    )
