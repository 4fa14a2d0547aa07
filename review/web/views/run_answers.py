"""The answers of a run, filtered; and one decision about many of them, with a preview before it counts."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, ngettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.accounts import access
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.core.whole_numbers import whole_number
from evaluation.models import Run
from evaluation.wording import numbers
from evaluation.wording.messages import explain_refusal
from review.decisions.overrides import effect_of, override_many
from review.evidence.exposures import expose_answers
from review.results.selection import Selection, narrowed, select
from review.web.forms.decision import Decided, read_decision
from review.web.forms.leading import ids_of
from review.web.forms.selection import query_of, wanted_from
from review.web.pages.run_answers import ManyPage, answer_row, run_answers_page, title_of
from review.web.views.people import person

LISTED = 50
EXAMPLES = 10


@login_required
@require_safe
def run_answers(request: HttpRequest, pk: int) -> HttpResponse:
    """The answers that match, a page at a time. They tell what the judge said, which is recorded."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    return _list(request, run, request.GET)


@login_required
@require_POST
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
    done = override_many(
        run, decided.metric, ids, value=decided.value, label=decided.label, reason=decided.reason, by=person(request)
    )
    count = len(done.answers)
    said = ngettext("Your value counts for %(count)d answer.", "Your value counts for %(count)d answers.", count)
    messages.success(request, said % {"count": count})
    return redirect(reverse("run-answers", args=[run.pk]) + query_of(request.POST))


def _preview(request: HttpRequest, run: Run, found: Selection, decided: Decided, ticked: list[int]) -> HttpResponse:
    if not decided.reason.strip():
        raise Refused("reason_required")
    ids = [one.answer.answer_id for one in found.rows]
    effect = effect_of(run, decided.metric, ids, value=decided.value, label=decided.label, by=person(request))
    touched = set(effect.answers)
    examples = [one for one in found.rows if one.answer.answer_id in touched][:EXAMPLES]
    expose_answers(request.user, [one.answer.answer_id for one in examples], "run answers")
    said = decided.label if decided.value is None else decided.value
    page = ManyPage(
        run_id=run.pk,
        run_name=str(run),
        metric=decided.metric.name,
        metric_title=title_of(decided.metric, get_language() or "en"),
        value=numbers.on_scale(said, decided.metric.read_scale()),
        entered=decided.entered,
        reason=decided.reason,
        effect=effect,
        rows=tuple(answer_row(one, run, decided.metric) for one in examples),
        mark=found.mark,
        chosen=tuple(ticked),
        query=query_of(request.POST),
        filters=_filters(request.POST),
    )
    return render(request, "review/run_override.html", {"page": page})


def _list(request: HttpRequest, run: Run, data: QueryDict, error: str = "") -> HttpResponse:
    wanted = wanted_from(data)
    found = select(run, wanted)
    asked = data.get("page", "1")
    number = whole_number(asked, 6) or 1
    shown = found.rows[(number - 1) * LISTED : number * LISTED]
    more = len(found.rows) > number * LISTED
    expose_answers(request.user, [one.answer.answer_id for one in shown], "run answers")
    page = run_answers_page(
        run,
        found,
        shown,
        wanted,
        may_override=access.may(request.user, run.project_id, Action.OVERRIDE),
        query=query_of(data),
        filters=_filters(data),
        back=query_of(data, page=str(number - 1)) if number > 1 else "",
        on=query_of(data, page=str(number + 1)) if more else "",
        error=error,
    )
    status = 409 if error else 200
    return render(request, "review/run_answers.html", {"page": page}, status=status)


def _filters(data: QueryDict) -> tuple[tuple[str, str], ...]:
    """The filters as hidden fields; the criterion has a field of its own."""
    kept = QueryDict(query_of(data).removeprefix("?"))
    return tuple((name, value) for name, value in kept.items() if isinstance(value, str) and name != "metric")
