"""Pages of a repair: create it, rate passages blind, view results, accept labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contrib.retrieval_truth.acceptance import accept_labels
from contrib.retrieval_truth.models import PassageRating, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.pooling import MAX_SYSTEMS, make_repair
from contrib.retrieval_truth.rating import (
    MAX_REASON_LENGTH,
    REPAIRS,
    PassageCard,
    count_ratings_since,
    last_rated_passage,
    next_card,
    rate_passage,
    set_open,
)
from contrib.retrieval_truth.results import (
    REPAIR_EXPORTS,
    RepairResult,
    export_repair,
    refuse_unfinished_rater,
    results_for,
)
from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_refusal
from evaluation.models import RoleGrant, Run, User
from evaluation.runs.exports import count_export, download_response
from review.statistics.retrieval_truth.pool import RetrievalMetric

MAX_NAME_LENGTH = 200
MAX_SIZE = 20_000
MAX_DEPTH = 50
MAX_RUNS = 50
TITLES = {
    RetrievalMetric.PRECISION: "Precision@%(k)d",
    RetrievalMetric.RECALL: "Recall@%(k)d",
    RetrievalMetric.NDCG: "nDCG@%(k)d",
}
# Grades with their keys, from most to least relevant.
CHOICES = (
    (PassageRating.Grade.RELEVANT, "1"),
    (PassageRating.Grade.PARTLY, "2"),
    (PassageRating.Grade.NOT, "3"),
    (PassageRating.Grade.CANNOT, "4"),
)


class ReviewersField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic for mypy alone
    """Selection of people by display name."""

    def label_from_instance(self, obj: User) -> str:
        return obj.display_name


class NewRepairForm(forms.Form):
    """Runs to pool, number of passages to rate, and reviewers."""

    runs = forms.ModelMultipleChoiceField(
        Run.objects.none(),
        label=_("Runs to pool with"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Runs of other systems over the same version of the question set."),
    )
    name = forms.CharField(
        label=_("Name"), max_length=MAX_NAME_LENGTH, help_text=_("Reviewers see this name. Don't mention a system.")
    )
    size = forms.IntegerField(label=_("Passages to rate"), min_value=1, max_value=MAX_SIZE, initial=200)
    k = forms.IntegerField(label=_("Depth k"), min_value=1, max_value=MAX_DEPTH, initial=10)
    partly_counts = forms.BooleanField(label=_("Count “partly relevant” as relevant"), required=False)
    first_relevant = forms.BooleanField(
        label=_("Include hit and MRR"),
        required=False,
        help_text=_("Every passage above the first known relevant one is then rated, which takes more ratings."),
    )
    reviewers = ReviewersField(
        User.objects.none(),
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Reviewers share the passages."),
    )
    guideline = forms.CharField(
        label=_("Guideline"), required=False, max_length=MAX_REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(self, run: Run, data: Any = None) -> None:
        super().__init__(data)
        comparable = Run.objects.select_related(Run.NAME_RELATION).filter(
            project=run.project_id, answer_set__question_set=run.answer_set.question_set_id
        )
        candidates = comparable.exclude(answer_set=run.answer_set_id).order_by("-id")
        newest = list(candidates.values_list("pk", flat=True)[:MAX_RUNS])
        self.fields["runs"].queryset = candidates.filter(pk__in=newest)  # type: ignore[attr-defined]
        people = RoleGrant.objects.filter(project=run.project_id).values("user")
        active = User.objects.filter(pk__in=people, is_active=True).order_by("username")
        self.fields["reviewers"].queryset = active  # type: ignore[attr-defined]


class GradeForm(forms.Form):
    """One grade of one passage."""

    passage = forms.ModelChoiceField(PooledPassage.objects.none())
    value = forms.ChoiceField(choices=PassageRating.Grade.choices)
    reason = forms.CharField(required=False)
    seconds = forms.FloatField(required=False, min_value=0, max_value=86_400)

    def __init__(self, repair: RetrievalRepair, data: Any) -> None:
        super().__init__(data)
        self.fields["passage"].queryset = repair.passages.filter(sampled=True)  # type: ignore[attr-defined]

    def clean_reason(self) -> str:
        """Count line breaks as one character, as the browser does."""
        reason: str = self.cleaned_data["reason"]
        return reason.replace("\r\n", "\n")


@signed_in_get
def truth_list(request: HttpRequest) -> HttpResponse:
    """List the repairs that the user leads or rates in."""
    user = signed_in_user(request)
    drawn = Count("passages", distinct=True, filter=Q(passages__sampled=True))
    is_graded = Q(passages__ratings__isnull=False) & ~Q(passages__ratings__grade=PassageRating.Grade.CANNOT)
    rated = Count("passages", distinct=True, filter=is_graded)
    rows = REPAIRS.visible_to(user).annotate(drawn=drawn, rated=rated)[:50]
    own_ids = set(RetrievalRepair.objects.filter(members__reviewer=user).values_list("pk", flat=True))
    may_lead = access.projects_with(user, Action.MANAGE_REVIEW).exists()
    context = {"rows": [(repair, repair.pk in own_ids) for repair in rows], "leads": may_lead}
    return render(request, "retrieval_truth/list.html", context)


@signed_in_form
def truth_new(request: HttpRequest) -> HttpResponse:
    """Create a repair for a run and others."""
    run_id = parse_int(request.POST.get("run") or request.GET.get("run") or "")
    if run_id is None:
        raise Http404
    run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, run_id)
    form = NewRepairForm(run, request.POST or None)
    if request.method == "POST" and form.is_valid():
        options = dict(form.cleaned_data)
        runs, reviewers = [run, *options.pop("runs")], list(options.pop("reviewers"))
        try:
            repair = make_repair(runs, reviewers=reviewers, by=signed_in_user(request), **options)
        except DomainError as error:
            form.add_error(None, explain_refusal(error))
        else:
            return redirect("truth", repair.pk)
    context = {"run": run, "form": form, "most": MAX_SYSTEMS}
    return render(request, "retrieval_truth/new.html", context)


@signed_in_get
def truth(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the results to leads; redirect raters to rating."""
    user = signed_in_user(request)
    repair = REPAIRS.get(user, pk)
    if not REPAIRS.leads(user, repair):
        return redirect("truth-rate", repair.pk)
    result, withheld = None, ""
    try:
        result = results_for(repair, user)
    except DomainError as error:
        withheld = explain_refusal(error)
    context = {
        "repair": repair,
        "result": result,
        "withheld": withheld,
        "verdict": _verdict_sentence(result) if result else "",
        "tables": _tables(result) if result else [],
        "differences": _tables(result, differences=True) if result else [],
        "member": repair.members.filter(reviewer=user).exists(),
        "systems": list(repair.systems.order_by("position").values_list("name", flat=True)),
        "accepted": (accepted := repair.accepted.select_related("question_set").order_by("pk").last()),
        "since": count_ratings_since(repair, accepted.created_at) if accepted else 0,
    }
    return render(request, "retrieval_truth/repair.html", context)


def _verdict_sentence(result: RepairResult) -> str:
    """Return the summary sentence at the top of the page."""
    # The first figure is precision, which has a value as soon as there are enough ratings.
    if result.figures[0].value is None:
        counts = {"rated": result.rated, "drawn": result.drawn}
        return gettext("Rated so far: %(rated)d of %(drawn)d. There are no corrected figures yet.") % counts
    if not result.better:
        return gettext("No system is clearly better by nDCG: every interval includes no difference.")
    figure = next(
        row
        for row in result.figures
        if row.metric == RetrievalMetric.NDCG and {row.system, row.minus} == {result.better, result.worse}
    )
    gap = numbers.format_number(abs(figure.value or 0.0), 3)
    params = {"better": result.better, "worse": result.worse, "gap": gap}
    return gettext("Better retrieval by nDCG: %(better)s over %(worse)s, by %(gap)s.") % params


def _tables(result: RepairResult, *, differences: bool = False) -> list[dict[str, Any]]:
    """Return one table for each metric, of systems or of differences."""
    rows = [figure for figure in result.figures if bool(figure.minus) == differences]
    return [
        {"title": TITLES[metric] % {"k": result.k}, "rows": [figure for figure in rows if figure.metric == metric]}
        for metric in RetrievalMetric
    ]


@signed_in_get
def truth_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Download figures or pool; for leads who have no passage left to rate."""
    user = signed_in_user(request)
    repair, format_name = REPAIRS.for_lead(user, pk), request.GET.get("format", "csv")
    if format_name not in REPAIR_EXPORTS.names:
        raise Http404
    try:
        refuse_unfinished_rater(repair, user)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("truth", repair.pk)
    count_export(user)
    return download_response(export_repair(repair, format_name))


@signed_in_get
def truth_rate(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the next passage, or one rated earlier."""
    user = signed_in_user(request)
    repair = REPAIRS.for_rater(user, pk)
    passage_id = request.GET.get("passage", "")
    card = next_card(repair, user, parse_int(passage_id))
    if card is None and passage_id:
        raise Http404
    return _render_card(request, repair, card)


@signed_in_post
def truth_save(request: HttpRequest, pk: int) -> HttpResponse:
    """Store a grade and show the next passage."""
    user = signed_in_user(request)
    repair = REPAIRS.for_rater(user, pk)
    form = GradeForm(repair, request.POST)
    if not form.is_valid():
        problems = [str(error) for errors in form.errors.values() for error in errors]
        return _render_rejected(request, repair, form, problems, status=400)
    cleaned = form.cleaned_data
    try:
        rate_passage(
            repair, cleaned["passage"], user, cleaned["value"], reason=cleaned["reason"], seconds=cleaned["seconds"]
        )
    except DomainError as refusal:
        return _render_rejected(request, repair, form, [explain_refusal(refusal)], status=409)
    return redirect("truth-rate", repair.pk)


def _render_rejected(
    request: HttpRequest, repair: RetrievalRepair, form: GradeForm, problems: Sequence[str], *, status: int
) -> HttpResponse:
    """Show the passage again with the input and the errors."""
    card = next_card(repair, signed_in_user(request), parse_int(str(form.data.get("passage", ""))))
    if card is not None:
        grade = str(form.cleaned_data.get("value", card.grade))
        card = card._replace(grade=grade, reason=str(form.data.get("reason", "")))
    return _render_card(request, repair, card, problems, status)


def _render_card(
    request: HttpRequest,
    repair: RetrievalRepair,
    card: PassageCard | None,
    problems: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    """Render a passage to rate, without system, rank or judge."""
    context = {
        "repair": repair,
        "card": card,
        "last": last_rated_passage(repair, signed_in_user(request)),
        "problems": problems,
        "choices": [(grade.value, grade.label, key) for grade, key in CHOICES],
    }
    return render(request, "retrieval_truth/rate.html", context, status=status)


@signed_in_post
def truth_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Close the repair for ratings, or open it again."""
    user = signed_in_user(request)
    repair = REPAIRS.for_lead(user, pk)
    set_open(repair, is_open=repair.closed_at is not None, by=user)
    return redirect("truth", repair.pk)


@signed_in_post
def truth_accept(request: HttpRequest, pk: int) -> HttpResponse:
    """Copy the labels into a new version of the question set."""
    user = signed_in_user(request)
    repair = REPAIRS.for_lead(user, pk)
    try:
        refuse_unfinished_rater(repair, user)
        accepted = accept_labels(repair, by=user)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("truth", repair.pk)
    return redirect("question-set", accepted.question_set_id)


urlpatterns = [
    path("retrieval-truth/", truth_list, name="truth-list"),
    path("retrieval-truth/new/", truth_new, name="truth-new"),
    path("retrieval-truth/<int:pk>/", truth, name="truth"),
    path("retrieval-truth/<int:pk>/rate/", truth_rate, name="truth-rate"),
    path("retrieval-truth/<int:pk>/save/", truth_save, name="truth-save"),
    path("retrieval-truth/<int:pk>/export/", truth_export, name="truth-export"),
    path("retrieval-truth/<int:pk>/close/", truth_close, name="truth-close"),
    path("retrieval-truth/<int:pk>/accept/", truth_accept, name="truth-accept"),
]
