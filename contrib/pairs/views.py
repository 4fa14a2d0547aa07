"""Side by side: the forms, the list of comparisons, making one, rating its pairs, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from contrib.pairs.figures import (
    PAIR_EXPORTS,
    PairFigures,
    Preferred,
    counting,
    export_pairs,
    figures_for,
    refuse_early,
)
from contrib.pairs.judging import spending_by_judge
from contrib.pairs.making import (
    LEAST,
    LONGEST_REASON,
    MOST,
    PAIR_SETS,
    Card,
    card_of,
    close_pairs,
    last_rated,
    make_pairs,
    prefer,
    reopen_pairs,
)
from contrib.pairs.models import Pair, PairSet, Preference
from contrib.pairs.pairwise import METRIC
from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason, explain_refusal
from evaluation.models import RoleGrant, Run, User
from evaluation.runs.exports import download, take_export
from evaluation.runs.progress import Spending
from review.reports.provenance_facts import cost_of_calls

LONGEST_NAME = 200
LARGEST = 5000


class People(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic for mypy alone
    """People by the names that pages know them by."""

    def label_from_instance(self, obj: User) -> str:
        """The person's name."""
        return obj.known_as


class NewPairsForm(forms.Form):
    """What to compare a run with, how many questions, and who rates."""

    run_b = forms.ModelChoiceField(Run.objects.none(), label=_("Compare with"))
    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME, help_text=_("Reviewers see it; name no system."))
    size = forms.IntegerField(label=_("Questions"), min_value=1, max_value=LARGEST, initial=30)
    reviewers = People(
        User.objects.none(), label=_("Reviewers"), widget=forms.CheckboxSelectMultiple, help_text=_("Each rates all.")
    )
    guideline = forms.CharField(
        label=_("Guideline"), required=False, max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(self, run: Run, data: Any = None) -> None:
        super().__init__(data)
        others = (
            Run.objects.select_related(Run.NAMED_BY)
            .filter(project=run.project_id)
            .exclude(answer_set=run.answer_set_id)
        )
        asked = run.answer_set.question_set.name
        choices = others.filter(answer_set__question_set__name=asked).order_by("-id")
        self.fields["run_b"].queryset = choices  # type: ignore[attr-defined]
        people = RoleGrant.objects.filter(project=run.project_id).values("user")
        active = User.objects.filter(pk__in=people, is_active=True).order_by("username")
        self.fields["reviewers"].queryset = active  # type: ignore[attr-defined]


class PreferenceForm(forms.Form):
    """One decision about one pair, as it was seen: -2 (left much better) to 2 (right much better)."""

    pair = forms.ModelChoiceField(Pair.objects.none())
    value = forms.TypedChoiceField(choices=[(str(n), str(n)) for n in range(LEAST, MOST + 1)], coerce=int)
    reason = forms.CharField(required=False)
    seconds = forms.FloatField(required=False, min_value=0, max_value=86_400)

    def __init__(self, found: PairSet, data: Any) -> None:
        super().__init__(data)
        self.fields["pair"].queryset = found.pairs.all()  # type: ignore[attr-defined]

    @property
    def pair_id(self) -> int | None:
        """The pair that was meant, where it can be told."""
        return whole_number(str(self.data.get("pair", "")))

    def clean_reason(self) -> str:
        """The reason with line breaks as the browser counted them, one character each."""
        reason: str = self.cleaned_data["reason"]
        return reason.replace("\r\n", "\n")

    def messages(self) -> list[str]:
        """Everything that is wrong, a missing choice first in plain words."""
        return [str(error) for errors in self.errors.values() for error in errors]


PAIRS_ON_A_PAGE = 25
PREFERRED = {
    -2.0: _("A much better"),
    -1.0: _("A better"),
    0.0: _("No difference"),
    1.0: _("B better"),
    2.0: _("B much better"),
}
CHOICES = (  # value, key and text of the five preferences, from left to right
    (-2, "1", _("Left much better")),
    (-1, "2", _("Left better")),
    (0, "3", _("No difference")),
    (1, "4", _("Right better")),
    (2, "5", _("Right much better")),
)


@signed_in_get
def pair_list(request: HttpRequest) -> HttpResponse:
    """The comparisons I lead or rate."""
    me = person(request)
    mine = Count("pairs__preferences__pair", distinct=True, filter=Q(pairs__preferences__rater=me))
    sets = PAIR_SETS.of(me).annotate(size=Count("pairs", distinct=True), rated=mine)[:50]
    named = set(PairSet.objects.filter(members__reviewer=me).values_list("pk", flat=True))
    rows = [(one, one.pk in named) for one in sets]
    leads = access.projects_with(me, Action.MANAGE_REVIEW).exists()
    return render(request, "pairs/list.html", {"rows": rows, "leads": leads})


@signed_in_form
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
    return render(request, "pairs/new.html", {"run": run, "form": form})


@signed_in_get
def pair_set(request: HttpRequest, pk: int) -> HttpResponse:
    """What came of a comparison, for its leads; whoever only rates is sent to rate."""
    me = person(request)
    found = PAIR_SETS.get(me, pk)
    if not PAIR_SETS.leads(me, found):
        return redirect("pairs-rate", found.pk)
    withheld = ""
    shown: dict[str, Any] = {}
    figures: dict[str, PairFigures] = {}
    try:
        figures = figures_for(found, me)
    except Refused as refused:
        withheld = explain_refusal(refused)
    if figures:
        shown = _pairs_shown(found, request.GET.get("page", ""))
    systems = list(found.pairs.order_by().values_list("system_a", "system_b").distinct()[:2])
    one, other = systems[0] if len(systems) == 1 else ("", "")
    first, spent = next(iter(figures.values()), None), spending_by_judge(found)
    shown |= {
        "pair_set": found,
        "system_a": one,
        "system_b": other,
        "size": found.pairs.count(),
        "member": found.members.filter(reviewer=me).exists(),
        "verdict": _verdict(first.experts, one or gettext("A"), other or gettext("B")) if first else "",
        "tables": [_table(each, spent) for each in figures.values()],
        "withheld": withheld,  # why the figures are not told yet
        "people": _people(found),
    }
    return render(request, "pairs/set.html", shown)


def _people(found: PairSet) -> list[tuple[str, int]]:
    """Every reviewer, in the order of names, with the number of pairs they have compared."""
    rows = Preference.objects.filter(pair__pair_set=found, rater__isnull=False).order_by().values_list("rater")
    rated = dict(rows.annotate(pairs=Count("pair", distinct=True)))
    people = [member.reviewer for member in found.members.select_related("reviewer")]
    return [(one.known_as, rated.get(one.pk, 0)) for one in sorted(people, key=lambda one: one.known_as)]


def _pairs_shown(found: PairSet, wanted: str) -> dict[str, Any]:
    """A page of the pairs with the preferences of them that count, people's first, in words; ``several``: they are by
    more than one metric."""
    pages = Paginator(found.pairs.order_by("position"), PAIRS_ON_A_PAGE)
    here = pages.get_page(wanted)
    pairs = list(here)
    said = sorted(counting(found).filter(pair__in=pairs), key=lambda row: (row.by_judge, row.metric, row.pk))
    return {
        "pairs": [(pair, [(row, _value(row)) for row in said if row.pair_id == pair.pk]) for pair in pairs],
        "several": len({row.metric for row in said}) > 1,
        "back": f"?page={here.number - 1}#pairs" if here.has_previous() else "",
        "on": f"?page={here.number + 1}#pairs" if here.has_next() else "",
    }


@signed_in_get
def pair_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The preferences as a file, for leads who have nothing left to compare in it."""
    me = person(request)
    found, wanted = PAIR_SETS.for_lead(me, pk), request.GET.get("format", "csv")
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


@signed_in_get
def pair_rate(request: HttpRequest, pk: int) -> HttpResponse:
    """The next pair, or one rated before to change one's mind."""
    me = person(request)
    found = PAIR_SETS.to_rate(me, pk)
    wanted = request.GET.get("pair", "")
    card = card_of(found, me, whole_number(wanted))
    if card is None and wanted:
        raise Http404
    return _rate(request, found, card)


@signed_in_post
def pair_prefer(request: HttpRequest, pk: int) -> HttpResponse:
    """Store a preference and go on with the next pair."""
    me = person(request)
    found = PAIR_SETS.to_rate(me, pk)
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
    card = card_of(found, person(request), form.pair_id)
    if card is not None and card.pair.pk == form.pair_id:
        said = form.cleaned_data
        card = card._replace(chosen=said.get("value", card.chosen), reason=str(form.data.get("reason", "")))
    return _rate(request, found, card, problems, status)


def _rate(
    request: HttpRequest, found: PairSet, card: Card | None, problems: Sequence[str] = (), status: int = 200
) -> HttpResponse:
    """A pair to rate; without a card all are rated. It names no system."""
    last = last_rated(found, person(request))
    shown = {"pair_set": found, "card": card, "last": last, "problems": problems, "choices": CHOICES}
    return render(request, "pairs/rate.html", shown, status=status)


@signed_in_post
def pair_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Take no further preferences, or take them again."""
    me = person(request)
    found = PAIR_SETS.for_lead(me, pk)
    (reopen_pairs if found.closed_at else close_pairs)(found, by=me)
    return redirect("pairs", found.pk)


def _value(row: Preference) -> str:
    if row.value is None:
        return explain_reason(row.failure) or gettext("no value")
    return str(PREFERRED[row.value]) if row.value in PREFERRED else numbers.signed(row.value)


def _verdict(experts: Preferred, a: str, b: str) -> str:
    if not experts.n:
        return ""
    if experts.low is not None and experts.high is not None and (experts.low > 0 or experts.high < 0):
        better = b if experts.low > 0 else a
        return gettext("The experts prefer %(system)s on questions like these.") % {"system": better}
    return gettext("Whom the experts prefer cannot be told yet: the interval holds no difference.")


def _table(figures: PairFigures, spent: Mapping[str, Spending]) -> dict[str, Any]:
    """The sources of one metric, experts first."""
    experts = [_row(gettext("Experts"), figures.experts)] if figures.experts.n else []
    alpha = (figures.among_experts or {}).get("krippendorff_alpha_interval")
    among = "" if alpha is None else gettext("agreement among them: alpha %(alpha)s") % {"alpha": numbers.plain(alpha)}
    several = len(figures.raters)
    return {
        "name": gettext("Preference") if figures.metric == METRIC else figures.metric,
        "rows": [*experts, *(_of_judge(name, figures, spent.get(name)) for name in figures.judges)],
        "raters": ngettext("%(count)d person", "%(count)d people", several) % {"count": several},
        "among": among,
    }


def _row(name: str, said: Preferred) -> dict[str, Any]:
    """What one source prefers: shares of A, ties and B in percent for the bar, and where that of B begins; rounding may
    leave a gap."""
    a, ties, b = (round(100 * count / max(said.n, 1)) for count in (said.a, said.ties, said.b))
    return {"name": name, "said": said, "a": a, "ties": ties, "b": b, "b_from": 100 - b}


def _of_judge(name: str, figures: PairFigures, spent: Spending | None) -> dict[str, Any]:
    """The same of a judge, with its agreement with the experts and what its calls cost."""
    agreement, orders = "", ""
    found, share = figures.agreement[name], figures.disagreeing_orders[name]
    if found.get("spearman") is not None:
        told = {"r": numbers.plain(found["spearman"]), "n": found["n"]}
        agreement = gettext("rank correlation %(r)s over %(n)d pairs") % told
    if share is not None:
        orders = gettext("changes sides with the order in %(share)s of the pairs") % {"share": numbers.share(share)}
    of_judge = {"judge": True, "agreement": agreement, "orders": orders, "cost": cost_of_calls(spent) if spent else ""}
    return _row(name, figures.judges[name]) | of_judge


urlpatterns = [
    path("pairs/", pair_list, name="pair-list"),
    path("pairs/new/", pair_new, name="pair-new"),
    path("pairs/<int:pk>/", pair_set, name="pairs"),
    path("pairs/<int:pk>/rate/", pair_rate, name="pairs-rate"),
    path("pairs/<int:pk>/prefer/", pair_prefer, name="pairs-prefer"),
    path("pairs/<int:pk>/export/", pair_export, name="pairs-export"),
    path("pairs/<int:pk>/close/", pair_close, name="pairs-close"),
]
