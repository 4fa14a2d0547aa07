"""Pages of review queues: list, creation, progress, people, items, export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

from django.contrib import messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext, ngettext

from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action, Role
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_refusal
from evaluation.models import MetricDefinition, RoleGrant, Run, Score, User
from evaluation.runs.exports import download, take_export
from review.agreement.variation import consistency
from review.decisions.cases import open_cases
from review.decisions.pages import case_rows
from review.evidence.answers import expose_queue
from review.models import QueueMember, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.models.queues import FIRST_OCCASION
from review.queues.access import cases_for_lead, leads, queue_for_lead, queue_for_reading, queues_of
from review.queues.design import Design, designs, expected_interval, told
from review.queues.directing import extend_all, invite, name_people, reassign, release_all, set_deadline
from review.queues.forms import QueueForm, ids_of, moment_of
from review.queues.making import make_queue
from review.queues.planning import ExpectedCard, GoalRow, Staff, expected_card, goal_rows, goals
from review.queues.preview import QueuePreview, queue_preview
from review.queues.progress import (
    doubtful_questions,
    own_progress,
    own_progresses,
    paces,
    queue_progress,
    ratings_given,
)
from review.queues.sharing import answers_to
from review.ratings.submitting import metrics_of
from review.reports.item_export import ITEM_EXPORTS, export_items
from review.reports.provenance_facts import strategy_title
from review.statistics.correction.frame import LEAST_LABELS
from review.statistics.sampling.member import DrawParams, Strategy

MOST_LISTED = 50
ITEMS_ON_A_PAGE = 50


@signed_in_get
def queue_list(request: HttpRequest) -> HttpResponse:
    """The queues I lead or am a member of, newest first."""
    me = person(request)
    led = set(access.projects_with(me, Action.MANAGE_REVIEW).values_list("pk", flat=True))
    queues = list(queues_of(me)[:MOST_LISTED])
    members = set(QueueMember.objects.filter(reviewer=me, queue__in=queues).values_list("queue_id", flat=True))
    own = own_progresses([queue for queue in queues if queue.pk in members], me)
    given = ratings_given([queue for queue in queues if queue.project_id in led])
    rows = [
        (queue, own.get(queue.pk), ratings := given.get(queue.pk), _percent(*ratings or (0, 0))) for queue in queues
    ]
    return render(request, "review/queues/queue_list.html", {"rows": rows, "leads": bool(led)})


def _percent(given: int, needed: int) -> int:
    """Ratings given of those needed, 0 to 100."""
    return min(100, round(100 * given / needed)) if needed else 0


@signed_in_get
def queue(request: HttpRequest, pk: int) -> HttpResponse:
    """A queue: everybody's progress for its leads, the own one for its members."""
    found, me = queue_for_reading(request.user, pk), person(request)
    shown = {
        "queue": found,
        "metrics": metrics_of(found),
        "own": own_progress(found, me) if QueueMember.objects.filter(queue=found, reviewer=me).exists() else None,
        "lead": _lead(found, me) if leads(me, found) else None,
    }
    return render(request, "review/queues/queue.html", shown)


@signed_in_post
def queue_set(request: HttpRequest, pk: int, step: Callable[..., None]) -> HttpResponse:
    """Close a queue, so that it serves nothing more, or open it again."""
    found = queue_for_lead(request.user, pk)
    step(found, by=person(request))
    return redirect("queue", found.pk)


@signed_in_get
def queue_people(request: HttpRequest, pk: int) -> HttpResponse:
    """Everybody's progress, pace and agreement."""
    return _people(request, queue_for_lead(request.user, pk))


def _step(step: Callable[[HttpRequest, ReviewQueue], str]) -> Callable[[HttpRequest, int], HttpResponse]:
    """Do a step with a queue and go back to its people, or say on their page why it is refused."""

    @signed_in_post
    @wraps(step)
    def done(request: HttpRequest, pk: int) -> HttpResponse:
        queue = queue_for_lead(request.user, pk)
        try:
            said = step(request, queue)
        except Refused as refused:
            return _people(request, queue, explain_refusal(refused))
        messages.success(request, said)
        return redirect("queue-people", queue.pk)

    return done


@_step
def queue_reassign(request: HttpRequest, queue: ReviewQueue) -> str:
    """Give what a person has not rated yet to another."""
    count = reassign(queue, _named(request, "giver"), _named(request, "taker"), by=person(request)).moved
    return ngettext("%(count)d answer changed hands.", "%(count)d answers changed hands.", count) % {"count": count}


@_step
def queue_release(request: HttpRequest, queue: ReviewQueue) -> str:
    """Give back what a person has in hand."""
    count = release_all(queue, _named(request, "giver"), by=person(request))
    return ngettext("%(count)d answer given back.", "%(count)d answers given back.", count) % {"count": count}


@_step
def queue_extend(request: HttpRequest, queue: ReviewQueue) -> str:
    """Prolong what a person has in hand."""
    count = extend_all(queue, _named(request, "giver"), by=person(request))
    said = ngettext("%(count)d reservation prolonged.", "%(count)d reservations prolonged.", count)
    return said % {"count": count}


@_step
def queue_deadline(request: HttpRequest, queue: ReviewQueue) -> str:
    """Move the deadline, or take it away."""
    set_deadline(queue, moment_of(request.POST.get("deadline", "")), by=person(request))
    return gettext("The deadline was changed.")


@_step
def queue_invite(request: HttpRequest, queue: ReviewQueue) -> str:
    """Let more people rate."""
    chosen = list(_newcomers(queue).filter(pk__in=ids_of(request.POST, "people")))
    invite(queue, chosen, by=person(request))
    return gettext("They see the queue on their start page from now on.")


@signed_in_form
def queue_items(request: HttpRequest, pk: int) -> HttpResponse:
    """Who has which answer; people can be named for some."""
    queue = queue_for_lead(request.user, pk)
    error = ""
    if request.method == "POST":
        people = [one for one in _members(queue) if one.pk in ids_of(request.POST, "people")]
        try:
            count = name_people(queue, ids_of(request.POST, "items"), people, by=person(request))
        except Refused as refused:
            error = explain_refusal(refused)
        else:
            said = ngettext("%(count)d answer is kept for them.", "%(count)d answers are kept for them.", count)
            messages.success(request, said % {"count": count})
            return redirect(request.get_full_path())
    return _items(request, queue, error)


@signed_in_get
def queue_questions(request: HttpRequest, pk: int) -> HttpResponse:
    """The questions that may be at fault themselves."""
    queue = queue_for_lead(request.user, pk)
    shown = {"queue": queue, "rows": doubtful_questions(queue)}
    return render(request, "review/queues/questions.html", shown)


@signed_in_get
def queue_export(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The items as a file: for leads all that was said, for members the own ratings of own items."""
    queue, me = queue_for_reading(request.user, pk), person(request)
    lead = leads(me, queue)
    if request.GET.get("format", "csv") not in ITEM_EXPORTS.names:
        raise Http404
    take_export(me)
    made = export_items(queue, request.GET.get("format", "csv"), None if lead else me)
    if lead:
        expose_queue(me, queue)
    return download(made)


def _lead(found: ReviewQueue, me: User) -> dict[str, Any]:
    """What only leads see of a queue. ``disputes`` wait for a decision; nothing in them tells who said what. ``runs``
    are key and name of what the answers were drawn from, ``draws`` say how."""
    draws = list(found.draws.select_related(f"run__{Run.NAMED_BY}").order_by("pk"))
    return {
        "progress": queue_progress(found),
        "disputes": case_rows(open_cases(cases_for_lead(me).filter(queue=found)), me),
        "runs": list(dict.fromkeys((one.run_id, str(one.run)) for one in draws)),
        "draws": list(
            dict.fromkeys(
                gettext("%(strategy)s, seed %(seed)s") % {"strategy": strategy_title(one.strategy), "seed": one.seed}
                for one in draws
            )
        ),
    }


def _people(request: HttpRequest, queue: ReviewQueue, error: str = "") -> HttpResponse:
    """The people of a queue in the order of their names and never by a figure: how far and how fast each is (no pace
    for who has rated nothing), and by name how far they agree."""
    members, pace = queue_progress(queue).reviewers, paces(queue)
    names = {one.reviewer.pk: one.reviewer.known_as for one in members}
    shown = {
        "queue": queue,
        "people": [(one, pace.get(one.reviewer.pk)) for one in members],
        "agreement": [(names.get(one.reviewer_id, "–"), one) for one in consistency(queue)],
        "newcomers": list(_newcomers(queue)),
        "error": error,
    }
    return render(request, "review/queues/people.html", shown, status=409 if error else 200)


def _items(request: HttpRequest, queue: ReviewQueue, error: str) -> HttpResponse:
    waiting = request.GET.get("waiting", "") == "1"
    rows = queue.items.filter(occasion=FIRST_OCCASION).select_related("answer__question").order_by("shuffle_key")
    if waiting:
        rows = rows.filter(reserved=True, reservations__isnull=True)
    number = whole_number(request.GET.get("page", "1"), 6) or 1
    start = (number - 1) * ITEMS_ON_A_PAGE
    keys = list(rows.values_list("pk", flat=True)[start : start + ITEMS_ON_A_PAGE + 1])  # texts are not sorted
    people = rows.prefetch_related("reservations__reviewer", "assignments__reviewer")
    found = list(people.filter(pk__in=keys))
    kept = "&waiting=1" if waiting else ""
    shown = {
        "queue": queue,
        "rows": found[:ITEMS_ON_A_PAGE],
        "people": _members(queue),
        "waiting": waiting,  # only those that are for nobody yet
        "back": f"?page={number - 1}{kept}" if number > 1 else "",
        "on": f"?page={number + 1}{kept}" if len(found) > ITEMS_ON_A_PAGE else "",
        "error": error,
    }
    return render(request, "review/queues/items.html", shown, status=409 if error else 200)


def _members(queue: ReviewQueue) -> list[User]:
    return list(User.objects.filter(queue_memberships__queue=queue).order_by("username"))


def _newcomers(queue: ReviewQueue) -> QuerySet[User]:
    granted = RoleGrant.objects.filter(project_id=queue.project_id, user__is_active=True).values("user")
    return User.objects.filter(pk__in=granted).exclude(queue_memberships__queue=queue).order_by("username")


def _named(request: HttpRequest, field: str) -> User:
    """The person a form names.

    :raises Refused: ``nobody_named``.
    """
    found = User.objects.filter(pk__in=ids_of(request.POST, field)).first()
    if found is None:
        raise Refused("nobody_named")
    return found


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
    return render(request, "review/queues/queue_new.html", {"run": run, "form": form, "error": error}, status=status)


@signed_in_get
def preview(request: HttpRequest) -> HttpResponse:
    """The preview fragment for the form as it stands."""
    run = _run(request)
    return render(request, "review/queues/_queue_preview.html", {"preview": _preview(_form(run, request.GET))})


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
