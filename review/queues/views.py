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
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action, Role
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_refusal
from evaluation.models import MetricDefinition, RoleGrant, Run, Score, User
from evaluation.runs.exports import count_export, download_response
from evaluation.templatetags.sorting import ListOrder
from review.agreement.variation import reviewer_consistency
from review.decisions.cases import open_cases
from review.decisions.pages import case_rows
from review.evidence.answers import record_queue_exposure
from review.models import Draw, QueueMember, ReviewQueue
from review.models.queue_spec import Mode, QueueSpec
from review.models.queues import FIRST_OCCASION
from review.queues.access import (
    cases_for_lead,
    leads,
    outside_readers_language,
    queue_for_lead,
    queue_for_reading,
    visible_queues,
)
from review.queues.creation import check_settings, make_queue
from review.queues.design import SampleDesign, design_samples, draw_params_by_run, unrated_range
from review.queues.distribution import answers_to_questions
from review.queues.forms import QueueForm, parse_moment, posted_ids
from review.queues.outcome import (
    expected_after_review,
    scores_after_review,
    sufficient_size,
    waiting_elsewhere,
)
from review.queues.planning import (
    ExpectedCard,
    GoalRow,
    PrecisionGoal,
    ReviewStaff,
    expected_card,
    goal_rows,
    precision_goals,
)
from review.queues.preview import QueuePreview, queue_preview
from review.queues.progress import (
    OwnProgress,
    doubtful_questions,
    own_progress,
    own_progress_by_queue,
    queue_progress,
    rating_counts,
    reviewer_paces,
)
from review.queues.reassignment import (
    extend_all,
    invite_reviewers,
    reassign,
    release_all,
    set_deadline,
    set_item_reviewers,
)
from review.queues.rounds import make_next_round, round_plan
from review.ratings.submitting import queue_metrics
from review.reports.figure import Figure, withheld_reason
from review.reports.item_export import ITEM_EXPORTS, export_items
from review.reports.provenance_facts import strategy_title
from review.statistics.paired_tests.gate import gate_confidence
from review.statistics.sampling.member import DrawParams, Strategy

MAX_LISTED = 50
ITEMS_PER_PAGE = 50


class QueueRow(NamedTuple):
    """A queue in the list. ``own`` is the user's progress; ``ratings`` are those given and needed, for its leads."""

    queue: ReviewQueue
    own: OwnProgress | None
    ratings: tuple[int, int] | None
    share: int


QUEUE_COLUMNS: Mapping[str, Callable[[QueueRow], Any]] = {
    "name": lambda row: row.queue.name.casefold(),
    "progress": lambda row: row.own.rated / max(row.own.items, 1) if row.own else -1.0,
    "ratings": lambda row: row.share if row.ratings else -1,
}


@signed_in_get
def queue_list(request: HttpRequest) -> HttpResponse:
    """List the queues that the user leads or is a member of: those in the reader's language first, then the newest."""
    user = signed_in_user(request)
    led_projects = set(access.projects_with(user, Action.MANAGE_REVIEW).values_list("pk", flat=True))
    queues = list(visible_queues(user).order_by(outside_readers_language(), "-pk")[:MAX_LISTED])
    member_queue_ids = set(
        QueueMember.objects.filter(reviewer=user, queue__in=queues).values_list("queue_id", flat=True)
    )
    progress = own_progress_by_queue([queue for queue in queues if queue.pk in member_queue_ids], user)
    counts_by_queue = rating_counts([queue for queue in queues if queue.project_id in led_projects])
    rows = [
        QueueRow(queue, progress.get(queue.pk), counts := counts_by_queue.get(queue.pk), _percent(*counts or (0, 0)))
        for queue in queues
    ]
    order = ListOrder(request.GET, QUEUE_COLUMNS)
    if order.column:
        rows.sort(key=order.column, reverse=order.descending)
    context = {"rows": rows, "order": order, "leads": bool(led_projects)}
    return render(request, "review/queues/queue_list.html", context)


def _percent(given_count: int, needed_count: int) -> int:
    return min(100, round(100 * given_count / needed_count)) if needed_count else 0


@signed_in_get
def queue(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a queue: everybody's progress for leads, their own progress for members."""
    review_queue, user = queue_for_reading(request.user, pk), signed_in_user(request)
    context = {
        "queue": review_queue,
        "metrics": queue_metrics(review_queue),
        "own": own_progress(review_queue, user)
        if QueueMember.objects.filter(queue=review_queue, reviewer=user).exists()
        else None,
        "lead": _lead_context(review_queue, user) if leads(user, review_queue) else None,
    }
    return render(request, "review/queues/queue.html", context)


@signed_in_post
def set_queue_state(request: HttpRequest, pk: int, action: Callable[..., None]) -> HttpResponse:
    """Close or reopen a queue."""
    review_queue = queue_for_lead(request.user, pk)
    action(review_queue, by=signed_in_user(request))
    return redirect("queue", review_queue.pk)


@signed_in_post
def queue_next_round(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the queue of the next planned round."""
    review_queue = queue_for_lead(request.user, pk)
    try:
        next_queue = make_next_round(review_queue, by=signed_in_user(request))
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("queue", review_queue.pk)
    messages.success(request, gettext("Queue opened. Reviewers see it on their home page."))
    return redirect("queue", next_queue.pk)


@signed_in_get
def queue_people(request: HttpRequest, pk: int) -> HttpResponse:
    """Show progress, pace and agreement of all reviewers."""
    return _people_page(request, queue_for_lead(request.user, pk))


def _people_action(action: Callable[[HttpRequest, ReviewQueue], str]) -> Callable[[HttpRequest, int], HttpResponse]:
    """Wrap an action on a queue: redirect to its people page, or show there why the action is refused."""

    @signed_in_post
    @wraps(action)
    def view(request: HttpRequest, pk: int) -> HttpResponse:
        queue = queue_for_lead(request.user, pk)
        try:
            message = action(request, queue)
        except DomainError as refusal:
            return _people_page(request, queue, explain_refusal(refusal))
        messages.success(request, message)
        return redirect("queue-people", queue.pk)

    return view


@_people_action
def queue_reassign(request: HttpRequest, queue: ReviewQueue) -> str:
    """Reassign a reviewer's unrated items to another reviewer."""
    count = reassign(
        queue, _posted_user(request, "giver"), _posted_user(request, "taker"), by=signed_in_user(request)
    ).moved
    return ngettext("%(count)d answer reassigned.", "%(count)d answers reassigned.", count) % {"count": count}


@_people_action
def queue_release(request: HttpRequest, queue: ReviewQueue) -> str:
    """Release all items that a reviewer holds."""
    count = release_all(queue, _posted_user(request, "giver"), by=signed_in_user(request))
    return ngettext("%(count)d answer released.", "%(count)d answers released.", count) % {"count": count}


@_people_action
def queue_extend(request: HttpRequest, queue: ReviewQueue) -> str:
    """Extend all leases of a reviewer."""
    count = extend_all(queue, _posted_user(request, "giver"), by=signed_in_user(request))
    message = ngettext("%(count)d reservation extended.", "%(count)d reservations extended.", count)
    return message % {"count": count}


@_people_action
def queue_deadline(request: HttpRequest, queue: ReviewQueue) -> str:
    """Set or remove the deadline."""
    set_deadline(queue, parse_moment(request.POST.get("deadline", "")), by=signed_in_user(request))
    return gettext("Deadline changed.")


@_people_action
def queue_invite(request: HttpRequest, queue: ReviewQueue) -> str:
    """Add reviewers."""
    people = list(_invitable_users(queue).filter(pk__in=posted_ids(request.POST, "people")))
    invite_reviewers(queue, people, by=signed_in_user(request))
    return gettext("Reviewers added. The queue is now on their home page.")


@signed_in_form
def queue_items(request: HttpRequest, pk: int) -> HttpResponse:
    """List the items with their reviewers, and set reviewers of selected items."""
    queue = queue_for_lead(request.user, pk)
    error = ""
    if request.method == "POST":
        people = [member for member in _members(queue) if member.pk in posted_ids(request.POST, "people")]
        try:
            count = set_item_reviewers(queue, posted_ids(request.POST, "items"), people, by=signed_in_user(request))
        except DomainError as refusal:
            error = explain_refusal(refusal)
        else:
            message = ngettext("%(count)d answer reserved for them.", "%(count)d answers reserved for them.", count)
            messages.success(request, message % {"count": count})
            return redirect(request.get_full_path())
    return _items_page(request, queue, error)


@signed_in_get
def queue_questions(request: HttpRequest, pk: int) -> HttpResponse:
    """List questions that may be faulty."""
    queue = queue_for_lead(request.user, pk)
    context = {"queue": queue, "rows": doubtful_questions(queue)}
    return render(request, "review/queues/questions.html", context)


@signed_in_get
def queue_export(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Export the items as a file: all ratings for leads, own ratings for members."""
    queue, user = queue_for_reading(request.user, pk), signed_in_user(request)
    is_lead = leads(user, queue)
    if request.GET.get("format", "csv") not in ITEM_EXPORTS.names:
        raise Http404
    count_export(user)
    export_file = export_items(queue, request.GET.get("format", "csv"), None if is_lead else user)
    if is_lead:
        record_queue_exposure(user, queue)
    return download_response(export_file)


def _lead_context(queue: ReviewQueue, user: User) -> dict[str, Any]:
    """Template context for leads. ``disputes`` wait for a decision and do not show who rated what. ``runs`` are key and
    name of the sampled runs; ``draws`` describe the draws. ``plan`` is that of the review's rounds."""
    draws = list(queue.draws.select_related(f"run__{Run.NAME_RELATION}").order_by("pk"))
    runs = dict.fromkeys((draw.run_id, str(draw.run)) for draw in draws)
    return {
        "progress": queue_progress(queue),
        "disputes": case_rows(open_cases(cases_for_lead(user).filter(queue=queue)), user),
        "runs": list(runs),
        "plan": round_plan(queue),
        "draws": list(dict.fromkeys(_draw_sentence(draw, with_run=len(runs) > 1) for draw in draws)),
    }


def _draw_sentence(draw: Draw, *, with_run: bool) -> str:
    facts = {"strategy": strategy_title(draw.strategy), "seed": draw.seed, "run": draw.run}
    if with_run:
        return gettext("%(run)s: %(strategy)s, seed %(seed)s") % facts
    return gettext("%(strategy)s, seed %(seed)s") % facts


def _people_page(request: HttpRequest, queue: ReviewQueue, error: str = "") -> HttpResponse:
    """List the people of a queue by name, with progress, pace (if they have rated) and agreement. They are never
    ranked."""
    members, pace_by_reviewer = queue_progress(queue).reviewers, reviewer_paces(queue)
    names = {member.reviewer.pk: member.reviewer.display_name for member in members}
    context = {
        "queue": queue,
        "people": [(member, pace_by_reviewer.get(member.reviewer.pk)) for member in members],
        "agreement": [(names.get(figures.reviewer_id, "–"), figures) for figures in reviewer_consistency(queue)],
        "newcomers": list(_invitable_users(queue)),
        "error": error,
    }
    return render(request, "review/queues/people.html", context, status=409 if error else 200)


def _items_page(request: HttpRequest, queue: ReviewQueue, error: str) -> HttpResponse:
    only_waiting = request.GET.get("waiting", "") == "1"
    rows = queue.items.filter(occasion=FIRST_OCCASION).select_related("answer__question").order_by("shuffle_key")
    if only_waiting:
        rows = rows.filter(reserved=True, reservations__isnull=True)
    page_number = parse_int(request.GET.get("page", "1"), 6) or 1
    start = (page_number - 1) * ITEMS_PER_PAGE
    # Fetch keys first, so that the database does not sort the texts.
    item_ids = list(rows.values_list("pk", flat=True)[start : start + ITEMS_PER_PAGE + 1])
    rows_with_people = rows.prefetch_related("reservations__reviewer", "assignments__reviewer")
    page_rows = list(rows_with_people.filter(pk__in=item_ids))
    filter_query = "&waiting=1" if only_waiting else ""
    context = {
        "queue": queue,
        "rows": page_rows[:ITEMS_PER_PAGE],
        "people": _members(queue),
        # Only items that are reserved, but for nobody.
        "waiting": only_waiting,
        "previous_url": f"?page={page_number - 1}{filter_query}" if page_number > 1 else "",
        "next_url": f"?page={page_number + 1}{filter_query}" if len(page_rows) > ITEMS_PER_PAGE else "",
        "error": error,
    }
    return render(request, "review/queues/items.html", context, status=409 if error else 200)


def _members(queue: ReviewQueue) -> list[User]:
    return list(User.objects.filter(queue_memberships__queue=queue).order_by("username"))


def _invitable_users(queue: ReviewQueue) -> QuerySet[User]:
    role_holders = RoleGrant.objects.filter(project_id=queue.project_id, user__is_active=True).values("user")
    return User.objects.filter(pk__in=role_holders).exclude(queue_memberships__queue=queue).order_by("username")


def _posted_user(request: HttpRequest, field: str) -> User:
    """The person selected in a form field.

    :raises DomainError: ``nobody_named``."""
    user = User.objects.filter(pk__in=posted_ids(request.POST, field)).first()
    if user is None:
        raise DomainError("nobody_named")
    return user


MAX_OTHER_RUNS = 20


@signed_in_form
def queue_new(request: HttpRequest) -> HttpResponse:
    """Show the form, and create the queue on submit. A link may set the strategy and the number of answers."""
    run = _requested_run(request)
    is_post = request.method == "POST"
    form = _queue_form(run, request.POST if is_post else None)
    error = ""
    if is_post and form.is_valid():
        try:
            queue = _create_queue(form, signed_in_user(request))
        except DomainError as refusal:
            error = explain_refusal(refusal)
        else:
            messages.success(request, gettext("Queue opened. Reviewers see it on their home page."))
            return redirect("queue", queue.pk)
    elif not is_post:
        size = min(QueueSpec().size, run.answer_set.answers.count())
        form.initial = {"size": size} | {
            name: request.GET[name] for name in ("strategy", "size") if name in request.GET
        }
    status = 409 if error else (400 if form.errors else 200)
    return render(request, "review/queues/queue_new.html", {"run": run, "form": form, "error": error}, status=status)


@signed_in_get
def preview(request: HttpRequest) -> HttpResponse:
    """Render the preview fragment for the current form."""
    run = _requested_run(request)
    context = {"run": run, "preview": _preview_card(_queue_form(run, request.GET))}
    return render(request, "review/queues/_queue_preview.html", context)


class RunPromise(NamedTuple):
    """Overall score that a run gets once the queue is rated, in words.

    ``reason`` is why it cannot be corrected. ``unrated_parts`` are title and weight of the parts that leave it partly
    corrected. ``half_width`` is empty if unknown; ``exact``: every answer would be rated."""

    run: str
    reason: str
    unrated_parts: Sequence[tuple[str, str]]
    half_width: str
    exact: bool


class PreviewCard(NamedTuple):
    """Preview of a queue in words, or the ``problem`` that prevents it.

    ``promises`` are empty for answers without probabilities. ``sufficient_size`` is the number of answers that a
    corrected score needs, if it is larger. ``waiting`` answers of other open queues are counted on. ``expected`` is for
    a single run. ``criteria_sentence`` says which criteria an answer gets, ``rounds_sentence`` which verdicts the
    planned rounds allow. ``all_rated``: a second opinion is left."""

    problem: str = ""
    estimate: QueuePreview | None = None
    time_per_reviewer: str = ""
    promises: Sequence[RunPromise] = ()
    sufficient_size: int | None = None
    waiting: int = 0
    expected: ExpectedCard | None = None
    goals: Sequence[GoalRow] = ()
    criteria_sentence: str = ""
    rounds_sentence: str = ""
    all_rated: bool = False


def _preview_card(form: QueueForm) -> PreviewCard:
    if not form.is_valid():
        return PreviewCard(form.errors_sentence)
    cleaned, runs, spec = form.cleaned_data, form.chosen_runs, form.spec
    try:
        check_settings(runs, spec, form.people, form.named_reviewers)
        metrics = form.chosen_metrics(spec)
        designs = design_samples(runs, metrics, spec.size, form.assumed_error)
        params = _draw_params(form, spec, designs)
        estimate = queue_preview(runs, metrics, spec, reviewers=form.people, params=params)
    except DomainError as refusal:
        return PreviewCard(explain_refusal(refusal), all_rated=refusal.code == "all_rated")
    share = spec.share_per_criterion(len(metrics))
    staff = ReviewStaff(len(form.people), spec.ratings_per_answer, estimate.pace)
    promises, expected, size, waiting = [], None, None, 0
    goals: Sequence[PrecisionGoal] = ()
    if spec.strategy.has_probabilities:
        bases = {pk: design.basis for pk, design in designs.items()}
        figures = scores_after_review(bases, metrics, spec, estimate.plan)
        waiting = waiting_elsewhere(bases, metrics, estimate.plan)
        for run in runs:
            interval = expected_after_review(designs[run.pk], figures[run.pk], estimate.plan, share)
            uses_neyman = spec.strategy == Strategy.STRATIFIED and designs[run.pk].uses_neyman
            expected = expected_card(interval, uses_neyman=uses_neyman)
            promises.append(_promise(form, run, figures[run.pk], expected))
        if any(promise.reason for promise in promises):
            size = sufficient_size(
                bases, runs, metrics, spec, estimate.plan, params, [person.pk for person in form.people]
            )
        if len(runs) == 1 and (size or not promises[0].reason):
            widening = unrated_range(designs[form.run.pk].basis, figures[form.run.pk])
            goals = precision_goals(
                designs[form.run.pk], staff, cleaned["width"], cleaned["difference"], share, widening
            )
    return PreviewCard(
        estimate=estimate,
        time_per_reviewer=numbers.format_duration(max(estimate.seconds_per_reviewer, 60.0)),
        promises=promises,
        sufficient_size=size,
        waiting=waiting,
        expected=expected if len(runs) == 1 else None,
        goals=goal_rows([goal for goal in goals if goal.items >= (size or 0)]),
        criteria_sentence=_criteria_sentence(metrics, estimate),
        rounds_sentence=_rounds_sentence(spec, estimate),
    )


def _promise(form: QueueForm, run: Run, figure: Figure, expected: ExpectedCard | None) -> RunPromise:
    titles = form.metric_titles
    parts = [(titles.get(name, name), numbers.format_share(weight)) for name, weight in figure.partly_corrected.items()]
    return RunPromise(
        str(run),
        withheld_reason(figure, titles) if figure.withheld else "",
        parts,
        expected.half_width if expected else "",
        bool(expected and not expected.half_width),
    )


def _criteria_sentence(metrics: Sequence[MetricDefinition], estimate: QueuePreview) -> str:
    language = get_language() or "en"
    titles = ", ".join(metric.title.get(language) or metric.name for metric in metrics)
    if estimate.criteria_per_answer < len(metrics):
        sentence = gettext("Each answer gets %(each)d of %(count)d criteria in turn: %(titles)s.")
        return sentence % {"each": estimate.criteria_per_answer, "count": len(metrics), "titles": titles}
    return gettext("Criteria for each answer: %(titles)s.") % {"titles": titles}


def _rounds_sentence(spec: QueueSpec, estimate: QueuePreview) -> str:
    """Say which verdicts the planned rounds allow; empty for samples that correct nothing."""
    if not spec.strategy.has_probabilities or spec.mode == Mode.ASSISTED:
        return ""
    if estimate.plan.follows_ratings:
        if spec.strategy is Strategy.ALL:
            return ""
        return gettext(
            "Answers of these runs are already rated, and this queue isn't a planned round. The corrected score will "
            "include it, but gates and comparisons will give no verdict. If a round is planned, start it on the page "
            "of its queue instead."
        )
    looks = spec.planned_looks
    facts = {"looks": looks, "size": spec.later_size or spec.size, "level": f"{100 * gate_confidence(looks):.4g}%"}
    if looks == 1:
        return gettext("No further rounds planned. Gates and comparisons use %(level)s intervals.") % facts
    sentence = gettext(
        "%(looks)d rounds planned, with %(size)d answers in each later one. Gates and comparisons use %(level)s "
        "intervals after each round."
    )
    return sentence % facts


def _draw_params(form: QueueForm, spec: QueueSpec, designs: Mapping[int, SampleDesign]) -> dict[int, DrawParams]:
    is_hand_picked = spec.strategy == Strategy.HAND_PICKED
    answer_ids_by_run = (
        answers_to_questions(form.chosen_runs, form.cleaned_data["questions"]) if is_hand_picked else None
    )
    return draw_params_by_run(designs, spec, answer_ids_by_run)


def _requested_run(request: HttpRequest) -> Run:
    run_id = parse_int(request.POST.get("run", "") or request.GET.get("run", ""))
    if run_id is None:
        raise Http404
    return access.fetch(
        Run.objects.select_related("answer_set__question_set", Run.NAME_RELATION),
        request.user,
        Action.MANAGE_REVIEW,
        run_id,
    )


def _queue_form(run: Run, data: QueryDict | None) -> QueueForm:
    scores = Score.objects.filter(run=run, metric=OuterRef("pk"))
    metrics = MetricDefinition.objects.filter(Exists(scores)).exclude(scale="seconds").order_by("-kind", "name")
    grants = RoleGrant.objects.filter(project_id=run.project_id, user__is_active=True)
    people = User.objects.filter(pk__in=grants.values("user")).order_by("username")
    expert_ids = grants.filter(role=Role.REVIEWER).values_list("user_id", flat=True)
    other_runs = Run.objects.filter(
        project_id=run.project_id, answer_set__question_set_id=run.answer_set.question_set_id
    )
    other_runs = (
        other_runs.select_related(Run.NAME_RELATION)
        .filter(Exists(Score.objects.filter(run=OuterRef("pk"))))
        .exclude(pk=run.pk)
        .order_by("-pk")
    )
    return QueueForm(
        data,
        run=run,
        other_runs=list(other_runs[:MAX_OTHER_RUNS]),
        metrics=list(metrics),
        people=list(people),
        experts=set(expert_ids),
    )


def _create_queue(form: QueueForm, by: User) -> ReviewQueue:
    runs, spec = form.chosen_runs, form.spec
    metrics = form.chosen_metrics(spec)
    return make_queue(
        runs,
        spec,
        metrics=[metric.name for metric in metrics],
        reviewers=form.people,
        named_reviewers=form.named_reviewers,
        params=_draw_params(form, spec, design_samples(runs, metrics, spec.size, form.assumed_error)),
        by=by,
    )
