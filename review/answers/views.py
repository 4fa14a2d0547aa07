"""The page of an answer and decisions about its scores; the answers of a run, filtered; and one decision about many of
them, with a preview before it counts."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_get, signed_in_post
from evaluation.core.canonical import composed, whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_refusal
from evaluation.models import Answer, Run, Score, User
from evaluation.scoring.writing import current
from review.agreement.answers import Event, EventKind, Selection, Wanted, history, narrowed, select
from review.answers.pages import SOURCES, answer_page, answer_row, choices_of
from review.decisions.overrides import effect_of, may_override, override, override_many, revert
from review.evidence.answers import expose, expose_answers
from review.evidence.effective import RunValues, Source, effective_values
from review.figure_cache.reading import listed_answers
from review.queues.access import answer_to_override
from review.queues.forms import ids_of
from review.ratings.forms import Decided, finite, read_decision
from review.reports.estimates import reviewed_score

OTHERS_WORDS = {EventKind.INITIAL, EventKind.FINAL, EventKind.FLAG, EventKind.ESCALATE, EventKind.SKIP, EventKind.UNDO}
LISTED = 50
EXAMPLES = 10
NAMES = ("metric", "low", "high", "label", "source", "category", "q")


@signed_in_get
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """An answer with everything said of it. Whoever may still have to rate it is recorded as having seen the judge."""
    return _page(request, _fetch(request, pk), request.GET.get("run", ""))


@signed_in_post
def override_score(request: HttpRequest, pk: int) -> HttpResponse:
    """Put a person's value above everything said before, with a reason."""

    def step(found: Answer, one: Decided, by: User) -> None:
        override(found, one.metric, value=one.value, label=one.label, reason=one.reason, by=by)

    return _decide(request, pk, step, gettext("Your value counts from now on; the others stay in the history."))


@signed_in_post
def revert_score(request: HttpRequest, pk: int) -> HttpResponse:
    """Take back the newest decision that stands."""

    def step(found: Answer, one: Decided, by: User) -> None:
        revert(found, one.metric, reason=one.reason, by=by)

    return _decide(request, pk, step, gettext("Taken back; what stood before stands again."))


def _decide(request: HttpRequest, pk: int, step: Callable[[Answer, Decided, User], None], done: str) -> HttpResponse:
    """Do what was decided and go back to the answer, or say on its page why it is refused."""
    found, run = answer_to_override(request.user, pk), request.POST.get("run", "")
    decided, seen_from = read_decision(request.POST), _run(found, run)
    before = _reviewed(request, seen_from)
    try:
        step(found, decided, person(request))
    except Refused as refused:
        return _page(request, found, run, decided, explain_refusal(refused))
    messages.success(request, f"{done} {_effect(before, _reviewed(request, seen_from))}")
    return redirect(f"{reverse('answer', args=[found.pk])}?run={seen_from.pk}")


def _reviewed(request: HttpRequest, run: Run) -> float | None:
    """The reviewed score of the run; ``None`` where there is none, or the person sees no runs."""
    return reviewed_score(run).value if access.may(person(request), run.project_id, Action.VIEW) else None


def _effect(before: float | None, after: float | None) -> str:
    """What decisions did to the reviewed score, and did not do to agreement."""
    said = gettext("Agreement does not move: a decision is made in sight of the judge and so is not blind.")
    if before is None or after is None:
        return said
    scores = {"before": numbers.plain(before, 3), "after": numbers.plain(after, 3)}
    moved = gettext("Reviewed score of the run: %(before)s before, %(after)s now.") % scores
    return f"{moved} {said}"


def _fetch(request: HttpRequest, pk: int) -> Answer:
    """The answer for who sees runs, and for the experts who have rated it."""
    rows = Answer.objects.select_related("question", "answer_set__system_version__system")
    try:
        return access.fetch(rows, request.user, Action.VIEW, pk)
    except PermissionDenied:
        found = rows.get(pk=pk)
        if may_override(person(request), found):
            return found
        raise Http404 from None


def _run(found: Answer, wanted: str) -> Run:
    """The run the page is seen from: the named one, else the newest over the answer set."""
    runs = _over(found)
    if wanted:
        runs = runs.filter(pk=whole_number(wanted) or 0)
    run = runs.first()
    if run is None:
        raise Http404
    return run


def _over(found: Answer) -> QuerySet[Run]:
    """The runs over the answer set, newest first."""
    return Run.objects.select_related(Run.NAMED_BY).filter(answer_set_id=found.answer_set_id).order_by("-pk")


def _page(
    request: HttpRequest, found: Answer, wanted: str, refused: Decided | None = None, error: str = ""
) -> HttpResponse:
    me, run = person(request), _run(found, wanted)
    expose(me, found, "answer page")
    may_view = access.may(me, found.answer_set.project_id, Action.VIEW)
    values = effective_values(run, {found.pk})
    page = answer_page(
        found,
        run,
        list(_over(found).exclude(pk=run.pk)[:10]),
        values,
        list(_scores(run, found)),
        _events(me, found, values, may_view=may_view),
        may_override=may_override(me, found),
        may_view=may_view,
        refused=refused,
        error=error,
    )
    return render(request, "review/answers/answer.html", {"page": page}, status=409 if refused else 200)


def _scores(run: Run, found: Answer) -> QuerySet[Score]:
    rows = current(Score.objects.filter(run=run, answer=found)).select_related(
        "metric", "judge_version", "rubric_version"
    )
    return rows.prefetch_related("findings").order_by("metric__name", "pk")


def _events(me: User, found: Answer, values: RunValues, *, may_view: bool) -> list[Event]:
    """The history; an expert without a right to runs sees nobody else's ratings."""
    origins = [one.carried for of in values.heard.values() for one in of.values() if one.carried]
    events = history(found, origins, reader=me)
    if may_view:
        return events
    return [event for event in events if event.kind not in OTHERS_WORDS or event.user_id == me.pk]


@signed_in_get
def run_answers(request: HttpRequest, pk: int) -> HttpResponse:
    """The answers that match, a page at a time. They tell what the judge said, which is recorded."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    return _list(request, run, request.GET)


@signed_in_post
def run_override(request: HttpRequest, pk: int) -> HttpResponse:
    """First how many answers a decision would change; with ``confirm`` it counts."""
    run = access.fetch(Run.objects.all(), request.user, Action.OVERRIDE, pk)
    wanted = wanted_from(request.POST)
    found = select(run, wanted)
    ticked = ids_of(request.POST, "answers")
    if ticked:
        found = narrowed(found, sorted(ticked))
    if found.metric is None:
        raise Http404
    data = request.POST.copy()
    data["metric"] = str(found.metric.pk)
    decided = read_decision(data)
    try:
        if request.POST.get("confirm"):
            return _confirmed(request, run, found, decided)
        return _preview(request, run, found, decided, sorted(ticked))
    except Refused as refused:
        return _list(request, run, request.POST, explain_refusal(refused))


def _confirmed(request: HttpRequest, run: Run, found: Selection, decided: Decided) -> HttpResponse:
    if request.POST.get("mark", "") != found.mark:
        raise Refused("selection_changed")
    ids = [one.answer.answer_id for one in found.rows]
    before = _reviewed(request, run)
    done = override_many(
        run, decided.metric, ids, value=decided.value, label=decided.label, reason=decided.reason, by=person(request)
    )
    count = len(done.answers)
    said = ngettext("Your value counts for %(count)d answer.", "Your value counts for %(count)d answers.", count)
    messages.success(request, f"{said % {'count': count}} {_effect(before, _reviewed(request, run))}")
    return redirect(reverse("run-answers", args=[run.pk]) + query_of(request.POST))


def _preview(request: HttpRequest, run: Run, found: Selection, decided: Decided, ticked: list[int]) -> HttpResponse:
    if not decided.reason.strip():
        raise Refused("reason_required")
    ids = [one.answer.answer_id for one in found.rows]
    effect = effect_of(run, decided.metric, ids, value=decided.value, label=decided.label, by=person(request))
    touched = set(effect.answers)
    examples = [one for one in found.rows if one.answer.answer_id in touched][:EXAMPLES]
    expose_answers(request.user, [one.answer.answer_id for one in examples], "run answers")
    shown = {
        "run": run,
        "decided": decided,
        "effect": effect,
        "rows": [answer_row(one, decided.metric) for one in examples],
        "mark": found.mark,  # of the selection that was seen
        "chosen": ticked,  # none for all that match
        "query": query_of(request.POST),
        "filters": _filters(request.POST),
    }
    return render(request, "review/answers/run_override.html", shown)


def _list(request: HttpRequest, run: Run, data: QueryDict, error: str = "") -> HttpResponse:
    wanted = wanted_from(data)
    number = whole_number(data.get("page", "1"), 6) or 1
    kept = listed_answers(run, wanted, (number - 1) * LISTED, LISTED)
    if (found := kept.value) is None:
        return render(request, "review/reports/in_making.html", {"title": run})
    more = found.count > number * LISTED
    expose_answers(request.user, [one.answer.answer_id for one in found.rows], "run answers")
    page = {
        "run": run,
        "kept": kept,
        "found": found,
        "wanted": wanted,
        "rows": [answer_row(one, found.metric) for one in found.rows],
        "sources": SOURCES.items(),
        "choices": choices_of(found.metric) if found.metric else (),
        "may_override": access.may(request.user, run.project_id, Action.OVERRIDE) and found.metric is not None,
        "filters": _filters(data),
        "back": query_of(data, page=str(number - 1)) if number > 1 else "",
        "on": query_of(data, page=str(number + 1)) if more else "",
        "error": error,
    }
    return render(request, "review/answers/run_answers.html", page, status=409 if error else 200)


def _filters(data: QueryDict) -> tuple[tuple[str, str], ...]:
    """The filters as hidden fields; the criterion has a field of its own."""
    kept = QueryDict(query_of(data).removeprefix("?"))
    return tuple((name, value) for name, value in kept.items() if isinstance(value, str) and name != "metric")


def wanted_from(data: QueryDict) -> Wanted:
    """What is asked for; a value that is none is passed over."""
    source = data.get("source", "")
    return Wanted(
        metric=data.get("metric", "")[:100],
        low=finite(data.get("low", "")),
        high=finite(data.get("high", "")),
        label=data.get("label", "")[:200],
        source=source if source in set(Source) else "",
        category=composed(data.get("category", ""))[:200],
        words=data.get("q", "").strip()[:200],
    )


def query_of(data: QueryDict, **more: str) -> str:
    """The filters as a query string again."""
    kept = QueryDict(mutable=True)
    kept.update({name: text for name in NAMES if (text := data.get(name, ""))})
    kept.update({name: value for name, value in more.items() if value})
    return f"?{kept.urlencode()}"
