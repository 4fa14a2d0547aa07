"""Side by side: the list of comparisons, making one, rating its pairs, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluation.accounts import access
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.core.whole_numbers import whole_number
from evaluation.models import Run, User
from evaluation.runs.exports import download, take_export
from evaluation.wording.messages import explain_refusal
from review.extras.pairs.access import leads_pairs, pair_set_for, pair_set_for_lead, pair_sets_of
from review.extras.pairs.exporting import PAIR_EXPORTS, export_pairs
from review.extras.pairs.figures import counting, figures_for, refuse_early
from review.extras.pairs.forms import NewPairsForm, PreferenceForm
from review.extras.pairs.judging import spending_by_judge
from review.extras.pairs.making import close_pairs, make_pairs, reopen_pairs
from review.extras.pairs.pages import NewPairsPage, PairListPage, PairRow, RatePage, pair_set_page
from review.extras.pairs.preferring import card_of, last_rated, prefer
from review.extras.pairs.voices import Done, done_by, pair_voices
from review.models import PairSet, Preference
from review.web.views.people import person

PAIRS_ON_A_PAGE = 25


@login_required
@require_safe
def pair_list(request: HttpRequest) -> HttpResponse:
    """The comparisons I lead or rate."""
    me = person(request)
    mine = Count("pairs__preferences__pair", distinct=True, filter=Q(pairs__preferences__rater=me))
    sets = pair_sets_of(me).annotate(size=Count("pairs", distinct=True), rated=mine)[:50]
    named = set(PairSet.objects.filter(members__reviewer=me).values_list("pk", flat=True))
    rows = tuple(PairRow(one.pk, one.name, one.size, one.rated, one.pk in named, one.closed_at is None) for one in sets)
    leads = access.projects_with(me, Action.MANAGE_REVIEW).exists()
    return render(request, "review/extras/pairs/list.html", {"page": PairListPage(rows, leads)})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def pair_new(request: HttpRequest) -> HttpResponse:
    """Make a comparison of a run with another one."""
    asked = whole_number(request.POST.get("run_a") or request.GET.get("run") or "")
    if asked is None:
        raise Http404
    run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, asked)
    form = NewPairsForm(run, request.POST or None)
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        try:
            made = make_pairs(
                run,
                said["run_b"],
                name=said["name"],
                reviewers=list(said["reviewers"]),
                size=said["size"],
                guideline=said["guideline"],
                by=person(request),
            )
        except Refused as refused:
            form.add_error(None, explain_refusal(refused))
        else:
            return redirect("pairs", made.pk)
    return render(request, "review/extras/pairs/new.html", {"page": NewPairsPage(run.pk, str(run), form)})


@login_required
@require_safe
def pair_set(request: HttpRequest, pk: int) -> HttpResponse:
    """What came of a comparison, for its leads; whoever only rates is sent to rate."""
    me = person(request)
    found = pair_set_for(me, pk)
    if not leads_pairs(me, found):
        return redirect("pairs-rate", found.pk)
    member, withheld, figures = found.members.filter(reviewer=me).exists(), "", {}
    try:
        figures = figures_for(found, me)
    except Refused as refused:
        withheld = explain_refusal(refused)
    shown = _pairs_shown(found, request.GET.get("page", "")) if figures else {}
    page = pair_set_page(
        found, figures, spending_by_judge(found), _people(found), member=member, withheld=withheld, **shown
    )
    return render(request, "review/extras/pairs/set.html", {"page": page})


def _people(found: PairSet) -> tuple[Done, ...]:
    rated = Preference.objects.filter(pair__pair_set=found, rater__isnull=False).order_by().values_list("rater")
    members = [member.reviewer for member in found.members.select_related("reviewer")]
    return done_by(members, dict(rated.annotate(pairs=Count("pair", distinct=True))))


def _pairs_shown(found: PairSet, wanted: str) -> dict[str, Any]:
    """A page of the pairs with what was said of them."""
    pages = Paginator(found.pairs.order_by("position"), PAIRS_ON_A_PAGE)
    here = pages.get_page(wanted)
    pairs = list(here)
    return {
        "pairs": pair_voices(pairs, list(counting(found).filter(pair__in=pairs))),
        "back": f"?page={here.number - 1}#pairs" if here.has_previous() else "",
        "on": f"?page={here.number + 1}#pairs" if here.has_next() else "",
    }


@login_required
@require_safe
def pair_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The preferences as a file, for leads who have nothing left to compare in it."""
    me = person(request)
    found, wanted = pair_set_for_lead(me, pk), request.GET.get("format", "csv")
    if wanted not in PAIR_EXPORTS.names:
        raise Http404
    try:
        refuse_early(found, me)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("pairs", found.pk)
    take_export(me)
    made = export_pairs(found, wanted)
    return download(made)


@login_required
@require_safe
def pair_rate(request: HttpRequest, pk: int) -> HttpResponse:
    """The next pair, or one rated before to change one's mind."""
    me = person(request)
    found = pair_set_for(me, pk)
    _require_member(found, me)
    wanted = request.GET.get("pair", "")
    card = card_of(found, me, whole_number(wanted))
    if card is None and wanted:
        raise Http404
    return render(request, "review/extras/pairs/rate.html", {"page": RatePage(found, card, last_rated(found, me))})


@login_required
@require_POST
def pair_prefer(request: HttpRequest, pk: int) -> HttpResponse:
    """Store a preference and go on with the next pair."""
    me = person(request)
    found = pair_set_for(me, pk)
    _require_member(found, me)
    form = PreferenceForm(found, request.POST)
    if not form.is_valid():
        return _not_stored(request, found, form, form.messages(), status=400)
    said = form.cleaned_data
    try:
        prefer(found, said["pair"], me, int(said["value"]), reason=said["reason"], seconds=said["seconds"])
    except Refused as refused:
        return _not_stored(request, found, form, [explain_refusal(refused)], status=409)
    return redirect("pairs-rate", found.pk)


def _not_stored(
    request: HttpRequest, found: PairSet, form: PreferenceForm, problems: Sequence[str], *, status: int
) -> HttpResponse:
    """The pair again with what was entered and why it does not count."""
    me = person(request)
    card = card_of(found, me, form.pair_id)
    if card is not None and card.pair.pk == form.pair_id:
        said = form.cleaned_data
        card = replace(card, chosen=said.get("value", card.chosen), reason=str(form.data.get("reason", "")))
    page = RatePage(found, card, last_rated(found, me), tuple(problems))
    return render(request, "review/extras/pairs/rate.html", {"page": page}, status=status)


@login_required
@require_POST
def pair_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Take no further preferences, or take them again."""
    me = person(request)
    found = pair_set_for_lead(me, pk)
    (reopen_pairs if found.closed_at else close_pairs)(found, by=me)
    return redirect("pairs", found.pk)


def _require_member(found: PairSet, me: User) -> None:
    if not found.members.filter(reviewer=me).exists():
        raise PermissionDenied
