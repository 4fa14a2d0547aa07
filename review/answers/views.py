"""Views of an answer, a run's answers, and overrides of one or many answers."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Max, Min, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import normalize_nfc, parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_refusal
from evaluation.models import Answer, Run, Score, User
from evaluation.runs.call_log import logged_calls
from evaluation.scoring.scores import current_scores
from evaluation.templatetags.sorting import ListOrder
from review.agreement.answers import (
    ORDERS,
    AnswerFilter,
    AnswerSelection,
    EventKind,
    HistoryEvent,
    answer_history,
    restrict_selection,
    select_answers,
)
from review.answers.pages import SOURCES, answer_page, answer_row, decision_choices
from review.decisions.overrides import may_override, override, override_many, preview_overrides, revert
from review.evidence.answers import record_answer_exposure, record_exposure
from review.evidence.effective import RunValues, ValueSource, effective_values
from review.figure_cache.selectors import listed_answers
from review.queues.access import answer_to_override
from review.queues.forms import posted_ids
from review.ratings.forms import DecisionInput, finite_number, read_decision
from review.reports.estimates import reviewed_score

REVIEWER_EVENT_KINDS = {
    EventKind.INITIAL,
    EventKind.FINAL,
    EventKind.FLAG,
    EventKind.ESCALATE,
    EventKind.SKIP,
    EventKind.UNDO,
}
ANSWERS_PER_PAGE = 50
MAX_EXAMPLES = 10
FILTER_FIELDS = ("metric", "low", "high", "label", "source", "category", "q", "order")


@signed_in_get
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Show an answer with its scores and history. Reviewers who have yet to rate it are no longer blind."""
    return _render_answer(request, _fetch(request, pk), request.GET.get("run", ""))


@signed_in_get
def answer_calls(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the judge calls for an answer in a run. They reveal judge values, so the view is recorded."""
    answer = access.fetch(Answer.objects.select_related("question"), request.user, Action.VIEW, pk)
    run = _requested_run(answer, request.GET.get("run", ""))
    record_exposure(signed_in_user(request), answer, "answer calls")
    context = {"answer": answer, "run": run, "calls": logged_calls(run, answer)}
    return render(request, "review/answers/calls.html", context)


@signed_in_post
def override_score(request: HttpRequest, pk: int) -> HttpResponse:
    """Override a metric's value, with a reason."""

    def apply_override(answer: Answer, decision: DecisionInput, by: User) -> None:
        override(answer, decision.metric, value=decision.value, label=decision.label, reason=decision.reason, by=by)

    return _decide(request, pk, apply_override, gettext("Your value now counts. The others stay in the history."))


@signed_in_post
def revert_score(request: HttpRequest, pk: int) -> HttpResponse:
    """Take back the newest decision in force."""

    def apply_revert(answer: Answer, decision: DecisionInput, by: User) -> None:
        revert(answer, decision.metric, reason=decision.reason, by=by)

    return _decide(request, pk, apply_revert, gettext("Reverted. The previous value applies again."))


def _decide(
    request: HttpRequest, pk: int, apply: Callable[[Answer, DecisionInput, User], None], success_message: str
) -> HttpResponse:
    """Apply a decision and return to the answer, or show the reason for a refusal."""
    answer, run_id = answer_to_override(request.user, pk), request.POST.get("run", "")
    decision, page_run = read_decision(request.POST), _requested_run(answer, run_id)
    score_before = _visible_reviewed_score(request, page_run)
    try:
        apply(answer, decision, signed_in_user(request))
    except DomainError as refusal:
        return _render_answer(request, answer, run_id, decision, explain_refusal(refusal))
    messages.success(
        request, f"{success_message} {_effect_sentence(score_before, _visible_reviewed_score(request, page_run))}"
    )
    return redirect(f"{reverse('answer', args=[answer.pk])}?run={page_run.pk}")


def _visible_reviewed_score(request: HttpRequest, run: Run) -> float | None:
    """Reviewed score of the run. ``None`` without one, or if the user may not view runs."""
    return reviewed_score(run).value if access.may(signed_in_user(request), run.project_id, Action.VIEW) else None


def _effect_sentence(score_before: float | None, score_after: float | None) -> str:
    """Effect of decisions on the reviewed score, and why agreement does not change."""
    agreement_note = gettext("Agreement doesn't change, because decisions made after seeing the judge are not blind.")
    if score_before is None or score_after is None:
        return agreement_note
    scores = {"before": numbers.format_number(score_before, 3), "after": numbers.format_number(score_after, 3)}
    score_note = gettext("Reviewed score of the run: %(before)s before, %(after)s now.") % scores
    return f"{score_note} {agreement_note}"


def _fetch(request: HttpRequest, pk: int) -> Answer:
    """Fetch the answer for users who may view runs and for experts who rated it."""
    rows = Answer.objects.select_related("question", "answer_set__system_version__system")
    try:
        return access.fetch(rows, request.user, Action.VIEW, pk)
    except PermissionDenied:
        answer = rows.get(pk=pk)
        if may_override(signed_in_user(request), answer):
            return answer
        raise Http404 from None


def _requested_run(answer: Answer, run_id: str) -> Run:
    """The requested run, else the newest over the answer set."""
    runs = _runs_over(answer)
    if run_id:
        runs = runs.filter(pk=parse_int(run_id) or 0)
    run = runs.first()
    if run is None:
        raise Http404
    return run


def _runs_over(answer: Answer) -> QuerySet[Run]:
    return Run.objects.select_related(Run.NAME_RELATION).filter(answer_set_id=answer.answer_set_id).order_by("-pk")


def _render_answer(
    request: HttpRequest, answer: Answer, run_id: str, refused_decision: DecisionInput | None = None, error: str = ""
) -> HttpResponse:
    user, run = signed_in_user(request), _requested_run(answer, run_id)
    record_exposure(user, answer, "answer page")
    may_view = access.may(user, answer.answer_set.project_id, Action.VIEW)
    values = effective_values(run, {answer.pk})
    page = answer_page(
        answer,
        run,
        list(_runs_over(answer).exclude(pk=run.pk)[:10]),
        values,
        list(_scores(run, answer)),
        _events(user, answer, values, may_view=may_view),
        may_override=may_override(user, answer),
        may_view=may_view,
        refused_decision=refused_decision,
        error=error,
    )
    context = {"page": page, "previous": None, "next": None}
    if may_view:
        neighbours = Answer.objects.filter(answer_set_id=answer.answer_set_id)
        context["previous"] = neighbours.filter(pk__lt=answer.pk).aggregate(Max("pk"))["pk__max"]
        context["next"] = neighbours.filter(pk__gt=answer.pk).aggregate(Min("pk"))["pk__min"]
    return render(request, "review/answers/answer.html", context, status=409 if refused_decision else 200)


def _scores(run: Run, answer: Answer) -> QuerySet[Score]:
    rows = current_scores(Score.objects.filter(run=run, answer=answer)).select_related(
        "metric", "judge_version", "rubric_version"
    )
    return rows.prefetch_related("findings").order_by("metric__name", "pk")


def _events(user: User, answer: Answer, values: RunValues, *, may_view: bool) -> list[HistoryEvent]:
    """History of the answer. Experts who may not view runs do not see ratings by others."""
    origins = [
        effective.carried
        for by_answer in values.human_values.values()
        for effective in by_answer.values()
        if effective.carried
    ]
    events = answer_history(answer, origins, reader=user)
    if may_view:
        return events
    return [event for event in events if event.kind not in REVIEWER_EVENT_KINDS or event.user_id == user.pk]


@signed_in_get
def run_answers(request: HttpRequest, pk: int) -> HttpResponse:
    """List matching answers, paginated. They reveal judge values, so the view is recorded."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    return _render_list(request, run, request.GET)


@signed_in_post
def run_override(request: HttpRequest, pk: int) -> HttpResponse:
    """Preview how many answers a decision changes, or apply it with ``confirm``."""
    run = access.fetch(Run.objects.all(), request.user, Action.OVERRIDE, pk)
    answer_filter = read_filter(request.POST)
    selection = select_answers(run, answer_filter)
    checked_ids = posted_ids(request.POST, "answers")
    if checked_ids:
        selection = restrict_selection(selection, sorted(checked_ids))
    if selection.metric is None:
        raise Http404
    data = request.POST.copy()
    data["metric"] = str(selection.metric.pk)
    decision = read_decision(data)
    try:
        if request.POST.get("confirm"):
            return _apply_to_selection(request, run, selection, decision)
        return _render_preview(request, run, selection, decision, sorted(checked_ids))
    except DomainError as refusal:
        return _render_list(request, run, request.POST, explain_refusal(refusal))


def _apply_to_selection(
    request: HttpRequest, run: Run, selection: AnswerSelection, decision: DecisionInput
) -> HttpResponse:
    if request.POST.get("mark", "") != selection.fingerprint:
        raise DomainError("selection_changed")
    ids = [row.answer.answer_id for row in selection.rows]
    score_before = _visible_reviewed_score(request, run)
    effect = override_many(
        run,
        decision.metric,
        ids,
        value=decision.value,
        label=decision.label,
        reason=decision.reason,
        by=signed_in_user(request),
    )
    count = len(effect.answers)
    text = ngettext(
        "Your value now counts for %(count)d answer.", "Your value now counts for %(count)d answers.", count
    )
    messages.success(
        request, f"{text % {'count': count}} {_effect_sentence(score_before, _visible_reviewed_score(request, run))}"
    )
    return redirect(reverse("run-answers", args=[run.pk]) + query_string(request.POST))


def _render_preview(
    request: HttpRequest, run: Run, selection: AnswerSelection, decision: DecisionInput, checked_ids: list[int]
) -> HttpResponse:
    if not decision.reason.strip():
        raise DomainError("reason_required")
    ids = [row.answer.answer_id for row in selection.rows]
    effect = preview_overrides(
        run, decision.metric, ids, value=decision.value, label=decision.label, by=signed_in_user(request)
    )
    changed_ids = set(effect.answers)
    examples = [row for row in selection.rows if row.answer.answer_id in changed_ids][:MAX_EXAMPLES]
    record_answer_exposure(request.user, [row.answer.answer_id for row in examples], "run answers")
    context = {
        "run": run,
        "decision": decision,
        "effect": effect,
        "rows": [answer_row(row, decision.metric) for row in examples],
        # The form posts this mark again, which detects a selection that changed since the preview.
        "mark": selection.fingerprint,
        # An empty list selects all matching answers.
        "checked_ids": checked_ids,
        "query": query_string(request.POST),
        "filters": _filters(request.POST),
    }
    return render(request, "review/answers/run_override.html", context)


def _render_list(request: HttpRequest, run: Run, data: QueryDict, error: str = "") -> HttpResponse:
    answer_filter = read_filter(data)
    page_number = parse_int(data.get("page", "1"), 6) or 1
    cached_listing = listed_answers(run, answer_filter, (page_number - 1) * ANSWERS_PER_PAGE, ANSWERS_PER_PAGE)
    if (listing := cached_listing.value) is None:
        return render(request, "review/reports/computing.html", {"title": run})
    has_next = listing.count > page_number * ANSWERS_PER_PAGE
    record_answer_exposure(request.user, [row.answer.answer_id for row in listing.rows], "run answers")
    page = {
        "run": run,
        "cached_value": cached_listing,
        "listing": listing,
        "answer_filter": answer_filter,
        "rows": [answer_row(row, listing.metric) for row in listing.rows],
        "sources": SOURCES.items(),
        "choices": decision_choices(listing.metric) if listing.metric else (),
        "may_override": access.may(request.user, run.project_id, Action.OVERRIDE) and listing.metric is not None,
        "filters": _filters(data),
        "previous_url": query_string(data, page=str(page_number - 1)) if page_number > 1 else "",
        "next_url": query_string(data, page=str(page_number + 1)) if has_next else "",
        "order": ListOrder(QueryDict(query_string(data).removeprefix("?")), {"category": "category", "value": "value"}),
        "error": error,
    }
    return render(request, "review/answers/run_answers.html", page, status=409 if error else 200)


def _filters(data: QueryDict) -> tuple[tuple[str, str], ...]:
    """Filters as hidden fields, except the metric, which has a visible field."""
    params = QueryDict(query_string(data).removeprefix("?"))
    return tuple((name, value) for name, value in params.items() if isinstance(value, str) and name != "metric")


def read_filter(data: QueryDict) -> AnswerFilter:
    """Read the filters. Invalid values are ignored."""
    source = data.get("source", "")
    return AnswerFilter(
        metric=data.get("metric", "")[:100],
        low=finite_number(data.get("low", "")),
        high=finite_number(data.get("high", "")),
        label=data.get("label", "")[:200],
        source=source if source in set(ValueSource) else "",
        category=normalize_nfc(data.get("category", ""))[:200],
        words=data.get("q", "").strip()[:200],
        order=order if (order := data.get("order", "")) in ORDERS else "",
    )


def query_string(data: QueryDict, **overrides: str) -> str:
    params = QueryDict(mutable=True)
    params.update({name: text for name in FILTER_FIELDS if (text := data.get(name, ""))})
    params.update({name: value for name, value in overrides.items() if value})
    return f"?{params.urlencode()}"
