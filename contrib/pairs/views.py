"""Pages of side-by-side comparisons: list, creation, rating and results."""

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
    PreferenceSummary,
    counting_preferences,
    export_pairs,
    figures_for,
    require_all_rated,
)
from contrib.pairs.judging import spending_by_judge
from contrib.pairs.models import Pair, PairSet, Preference
from contrib.pairs.pairwise import METRIC
from contrib.pairs.services import (
    MAX_PREFERENCE,
    MAX_REASON_LENGTH,
    MIN_PREFERENCE,
    PAIR_SETS,
    PairCard,
    close_pairs,
    last_rated_pair,
    make_pairs,
    pair_card,
    reopen_pairs,
    store_preference,
)
from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_reason, explain_refusal
from evaluation.models import RoleGrant, Run, User
from evaluation.runs.exports import count_export, download_response
from evaluation.runs.progress import Spending
from review.reports.provenance_facts import cost_of_calls

MAX_NAME_LENGTH = 200
MAX_QUESTIONS = 5000


class UserMultipleChoiceField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic for mypy alone
    """Choice of users by display name."""

    def label_from_instance(self, obj: User) -> str:
        return obj.display_name


class NewPairsForm(forms.Form):
    """A new comparison: second run, number of questions, and reviewers."""

    run_b = forms.ModelChoiceField(Run.objects.none(), label=_("Compare with"))
    name = forms.CharField(
        label=_("Name"), max_length=MAX_NAME_LENGTH, help_text=_("Reviewers see this name. Don't mention a system.")
    )
    size = forms.IntegerField(label=_("Number of questions"), min_value=1, max_value=MAX_QUESTIONS, initial=30)
    reviewers = UserMultipleChoiceField(
        User.objects.none(),
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Each reviewer rates all pairs."),
    )
    guideline = forms.CharField(
        label=_("Guideline"), required=False, max_length=MAX_REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(self, run: Run, data: Any = None) -> None:
        super().__init__(data)
        other_runs = (
            Run.objects.select_related(Run.NAME_RELATION)
            .filter(project=run.project_id)
            .exclude(answer_set=run.answer_set_id)
        )
        question_set_name = run.answer_set.question_set.name
        choices = other_runs.filter(answer_set__question_set__name=question_set_name).order_by("-id")
        self.fields["run_b"].queryset = choices  # type: ignore[attr-defined]
        member_ids = RoleGrant.objects.filter(project=run.project_id).values("user")
        active_users = User.objects.filter(pk__in=member_ids, is_active=True).order_by("username")
        self.fields["reviewers"].queryset = active_users  # type: ignore[attr-defined]


class PreferenceForm(forms.Form):
    """A preference as shown: -2 (left much better) to 2 (right much better)."""

    pair = forms.ModelChoiceField(Pair.objects.none())
    value = forms.TypedChoiceField(
        choices=[(str(n), str(n)) for n in range(MIN_PREFERENCE, MAX_PREFERENCE + 1)], coerce=int
    )
    reason = forms.CharField(required=False)
    seconds = forms.FloatField(required=False, min_value=0, max_value=86_400)

    def __init__(self, pair_set: PairSet, data: Any) -> None:
        super().__init__(data)
        self.fields["pair"].queryset = pair_set.pairs.all()  # type: ignore[attr-defined]

    @property
    def pair_id(self) -> int | None:
        """Primary key of the submitted pair; ``None`` if it is no number."""
        return parse_int(str(self.data.get("pair", "")))

    def clean_reason(self) -> str:
        """Normalize line breaks to one character, as the browser counts them."""
        reason: str = self.cleaned_data["reason"]
        return reason.replace("\r\n", "\n")

    def error_messages(self) -> list[str]:
        """All errors of the form."""
        return [str(error) for errors in self.errors.values() for error in errors]


PAIRS_PER_PAGE = 25
PREFERENCE_TITLES = {
    -2.0: _("A much better"),
    -1.0: _("A better"),
    0.0: _("No difference"),
    1.0: _("B better"),
    2.0: _("B much better"),
}
# Value, key and text of the five preferences, from left to right.
CHOICES = (
    (-2, "1", _("Left much better")),
    (-1, "2", _("Left better")),
    (0, "3", _("No difference")),
    (1, "4", _("Right better")),
    (2, "5", _("Right much better")),
)


@signed_in_get
def pair_list(request: HttpRequest) -> HttpResponse:
    """List the comparisons that the user leads or rates in."""
    user = signed_in_user(request)
    rated_pairs = Count("pairs__preferences__pair", distinct=True, filter=Q(pairs__preferences__rater=user))
    sets = PAIR_SETS.visible_to(user).annotate(size=Count("pairs", distinct=True), rated=rated_pairs)[:50]
    own_set_ids = set(PairSet.objects.filter(members__reviewer=user).values_list("pk", flat=True))
    rows = [(pair_set, pair_set.pk in own_set_ids) for pair_set in sets]
    leads = access.projects_with(user, Action.MANAGE_REVIEW).exists()
    return render(request, "pairs/list.html", {"rows": rows, "leads": leads})


@signed_in_form
def pair_new(request: HttpRequest) -> HttpResponse:
    """Create a comparison of a run with another one."""
    run_id = parse_int(request.POST.get("run_a") or request.GET.get("run") or "")
    if run_id is None:
        raise Http404
    run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, run_id)
    form = NewPairsForm(run, request.POST or None)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            pair_set = make_pairs(
                run,
                cleaned["run_b"],
                name=cleaned["name"],
                reviewers=list(cleaned["reviewers"]),
                size=cleaned["size"],
                guideline=cleaned["guideline"],
                by=signed_in_user(request),
            )
        except DomainError as refusal:
            form.add_error(None, explain_refusal(refusal))
        else:
            return redirect("pairs", pair_set.pk)
    return render(request, "pairs/new.html", {"run": run, "form": form})


@signed_in_get
def pair_set_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the results to leads; redirect members to the rating page."""
    user = signed_in_user(request)
    pair_set = PAIR_SETS.get(user, pk)
    if not PAIR_SETS.leads(user, pair_set):
        return redirect("pairs-rate", pair_set.pk)
    withheld = ""
    context: dict[str, Any] = {}
    figures: dict[str, PairFigures] = {}
    try:
        figures = figures_for(pair_set, user)
    except DomainError as refusal:
        withheld = explain_refusal(refusal)
    if figures:
        context = _pairs_context(pair_set, request.GET.get("page", ""))
    systems = list(pair_set.pairs.order_by().values_list("system_a", "system_b").distinct()[:2])
    system_a, system_b = systems[0] if len(systems) == 1 else ("", "")
    first_figures, spending = next(iter(figures.values()), None), spending_by_judge(pair_set)
    context |= {
        "pair_set": pair_set,
        "system_a": system_a,
        "system_b": system_b,
        "size": pair_set.pairs.count(),
        "member": pair_set.members.filter(reviewer=user).exists(),
        "verdict": _verdict_sentence(first_figures.experts, system_a or gettext("A"), system_b or gettext("B"))
        if first_figures
        else "",
        "tables": [_table(metric_figures, spending) for metric_figures in figures.values()],
        # Why the figures are not shown yet.
        "withheld": withheld,
        "people": _rated_counts(pair_set),
    }
    return render(request, "pairs/set.html", context)


def _rated_counts(pair_set: PairSet) -> list[tuple[str, int]]:
    """Reviewers by name, with the number of pairs each has compared."""
    rows = Preference.objects.filter(pair__pair_set=pair_set, rater__isnull=False).order_by().values_list("rater")
    rated_by_user = dict(rows.annotate(pairs=Count("pair", distinct=True)))
    people = [member.reviewer for member in pair_set.members.select_related("reviewer")]
    return [
        (user.display_name, rated_by_user.get(user.pk, 0))
        for user in sorted(people, key=lambda user: user.display_name)
    ]


def _pairs_context(pair_set: PairSet, page_number: str) -> dict[str, Any]:
    """Page of the pairs with their counting preferences in words, people's first. ``several``: there is more than one
    metric."""
    pages = Paginator(pair_set.pairs.order_by("position"), PAIRS_PER_PAGE)
    page = pages.get_page(page_number)
    pairs = list(page)
    preferences = sorted(
        counting_preferences(pair_set).filter(pair__in=pairs), key=lambda row: (row.by_judge, row.metric, row.pk)
    )
    return {
        "pairs": [
            (pair, [(row, _preference_text(row)) for row in preferences if row.pair_id == pair.pk]) for pair in pairs
        ],
        "several": len({row.metric for row in preferences}) > 1,
        "previous_url": f"?page={page.number - 1}#pairs" if page.has_previous() else "",
        "next_url": f"?page={page.number + 1}#pairs" if page.has_next() else "",
    }


@signed_in_get
def pair_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Export the preferences, for leads without pairs left to compare."""
    user = signed_in_user(request)
    pair_set, format_name = PAIR_SETS.for_lead(user, pk), request.GET.get("format", "csv")
    if format_name not in PAIR_EXPORTS.names:
        raise Http404
    try:
        require_all_rated(pair_set, user)
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("pairs", pair_set.pk)
    count_export(user)
    export_file = export_pairs(pair_set, format_name)
    return download_response(export_file)


@signed_in_get
def pair_rate(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the next pair, or a rated one to change."""
    user = signed_in_user(request)
    pair_set = PAIR_SETS.for_rater(user, pk)
    pair_param = request.GET.get("pair", "")
    card = pair_card(pair_set, user, parse_int(pair_param))
    if card is None and pair_param:
        raise Http404
    return _rate_page(request, pair_set, card)


@signed_in_post
def pair_prefer(request: HttpRequest, pk: int) -> HttpResponse:
    """Store a preference and go on to the next pair."""
    user = signed_in_user(request)
    pair_set = PAIR_SETS.for_rater(user, pk)
    form = PreferenceForm(pair_set, request.POST)
    if not form.is_valid():
        return _preference_error(request, pair_set, form, form.error_messages(), status=400)
    cleaned = form.cleaned_data
    try:
        store_preference(
            pair_set, cleaned["pair"], user, int(cleaned["value"]), reason=cleaned["reason"], seconds=cleaned["seconds"]
        )
    except DomainError as refusal:
        return _preference_error(request, pair_set, form, [explain_refusal(refusal)], status=409)
    return redirect("pairs-rate", pair_set.pk)


def _preference_error(
    request: HttpRequest, pair_set: PairSet, form: PreferenceForm, problems: Sequence[str], *, status: int
) -> HttpResponse:
    """Show the pair again with the entered values and the problems."""
    card = pair_card(pair_set, signed_in_user(request), form.pair_id)
    if card is not None and card.pair.pk == form.pair_id:
        cleaned = form.cleaned_data
        card = card._replace(preference=cleaned.get("value", card.preference), reason=str(form.data.get("reason", "")))
    return _rate_page(request, pair_set, card, problems, status)


def _rate_page(
    request: HttpRequest, pair_set: PairSet, card: PairCard | None, problems: Sequence[str] = (), status: int = 200
) -> HttpResponse:
    """Render a pair to rate, without naming systems; without a card all pairs are rated."""
    last_pair = last_rated_pair(pair_set, signed_in_user(request))
    context = {"pair_set": pair_set, "card": card, "last": last_pair, "problems": problems, "choices": CHOICES}
    return render(request, "pairs/rate.html", context, status=status)


@signed_in_post
def pair_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Close the comparison, or reopen it."""
    user = signed_in_user(request)
    pair_set = PAIR_SETS.for_lead(user, pk)
    (reopen_pairs if pair_set.closed_at else close_pairs)(pair_set, by=user)
    return redirect("pairs", pair_set.pk)


def _preference_text(row: Preference) -> str:
    if row.value is None:
        return explain_reason(row.failure) or gettext("no value")
    return str(PREFERENCE_TITLES[row.value]) if row.value in PREFERENCE_TITLES else numbers.format_signed(row.value)


def _verdict_sentence(experts: PreferenceSummary, a: str, b: str) -> str:
    if not experts.n:
        return ""
    if experts.low is not None and experts.high is not None and (experts.low > 0 or experts.high < 0):
        better = b if experts.low > 0 else a
        return gettext("Experts prefer %(system)s on questions like these.") % {"system": better}
    return gettext("No clear expert preference yet: the interval includes no difference.")


def _table(figures: PairFigures, spending: Mapping[str, Spending]) -> dict[str, Any]:
    """Table of one metric by source, experts first."""
    expert_rows = [_row(gettext("Experts"), figures.experts)] if figures.experts.n else []
    alpha = (figures.among_experts or {}).get("krippendorff_alpha_interval")
    agreement_text = (
        ""
        if alpha is None
        else gettext("inter-expert agreement: alpha %(alpha)s") % {"alpha": numbers.format_number(alpha)}
    )
    rater_count = len(figures.raters)
    return {
        "name": gettext("Preference") if figures.metric == METRIC else figures.metric,
        "rows": [*expert_rows, *(_judge_row(name, figures, spending.get(name)) for name in figures.judges)],
        "raters": ngettext("%(count)d person", "%(count)d people", rater_count) % {"count": rater_count},
        "among": agreement_text,
    }


def _row(name: str, summary: PreferenceSummary) -> dict[str, Any]:
    """Cells of one source: shares of A, ties and B in percent for the bar, and the start of B; rounding may leave a
    gap."""
    a, ties, b = (round(100 * count / max(summary.n, 1)) for count in (summary.a, summary.ties, summary.b))
    return {"name": name, "summary": summary, "a": a, "ties": ties, "b": b, "b_from": 100 - b}


def _judge_row(name: str, figures: PairFigures, spending: Spending | None) -> dict[str, Any]:
    """Cells of a judge, with its agreement with the experts and the cost of its calls."""
    agreement, orders = "", ""
    statistics_by_name, share = figures.agreement[name], figures.disagreeing_orders[name]
    if statistics_by_name.get("spearman") is not None:
        params = {"r": numbers.format_number(statistics_by_name["spearman"]), "n": statistics_by_name["n"]}
        agreement = gettext("rank correlation %(r)s over %(n)d pairs") % params
    if share is not None:
        orders = gettext("order changes the preferred side in %(share)s of pairs") % {
            "share": numbers.format_share(share)
        }
    judge_cells = {
        "judge": True,
        "agreement": agreement,
        "orders": orders,
        "cost": cost_of_calls(spending) if spending else "",
    }
    return _row(name, figures.judges[name]) | judge_cells


urlpatterns = [
    path("pairs/", pair_list, name="pair-list"),
    path("pairs/new/", pair_new, name="pair-new"),
    path("pairs/<int:pk>/", pair_set_page, name="pairs"),
    path("pairs/<int:pk>/rate/", pair_rate, name="pairs-rate"),
    path("pairs/<int:pk>/prefer/", pair_prefer, name="pairs-prefer"),
    path("pairs/<int:pk>/export/", pair_export, name="pairs-export"),
    path("pairs/<int:pk>/close/", pair_close, name="pairs-close"),
]
