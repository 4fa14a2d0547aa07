"""Pages of a repair: making it, rating its passages blind, what came of it, and taking its labels over."""

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

from contrib.retrieval_truth.accepting import accept_labels
from contrib.retrieval_truth.models import PassageRating, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.pooling import MOST_SYSTEMS, make_repair
from contrib.retrieval_truth.rating import (
    LONGEST_REASON,
    REPAIRS,
    PassageCard,
    card_of,
    last_rated,
    newest_since,
    rate,
    set_open,
)
from contrib.retrieval_truth.results import (
    REPAIR_EXPORTS,
    RepairResult,
    export_repair,
    refuse_early,
    results_for,
)
from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_refusal
from evaluation.models import RoleGrant, Run, User
from evaluation.runs.exports import download, take_export
from review.statistics.retrieval_truth.pool import Metric

LONGEST_NAME = 200
LARGEST = 20_000
DEEPEST = 50
RUNS_SHOWN = 50
TITLES = {Metric.PRECISION: "Precision@%(k)d", Metric.RECALL: "Recall@%(k)d", Metric.NDCG: "nDCG@%(k)d"}
CHOICES = (  # grade and key, from most to least relevant
    (PassageRating.Grade.RELEVANT, "1"),
    (PassageRating.Grade.PARTLY, "2"),
    (PassageRating.Grade.NOT, "3"),
    (PassageRating.Grade.CANNOT, "4"),
)


class People(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic for mypy alone
    """People by the names that pages know them by."""

    def label_from_instance(self, obj: User) -> str:
        """The person's name."""
        return obj.known_as


class NewRepairForm(forms.Form):
    """Which systems' retrieval to pool, how many passages to have rated, and by whom."""

    runs = forms.ModelMultipleChoiceField(
        Run.objects.none(),
        label=_("Together with the runs"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Runs of other systems over the same version of the question set."),
    )
    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME, help_text=_("Reviewers see it; name no system."))
    size = forms.IntegerField(label=_("Passages to rate"), min_value=1, max_value=LARGEST, initial=200)
    k = forms.IntegerField(label=_("Depth k"), min_value=1, max_value=DEEPEST, initial=10)
    partly_counts = forms.BooleanField(label=_("Count “partly relevant” as relevant"), required=False)
    first_relevant = forms.BooleanField(
        label=_("Also hit and MRR"),
        required=False,
        help_text=_("Every passage above the first one known to be relevant is rated then; that takes more ratings."),
    )
    reviewers = People(
        User.objects.none(),
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("They take passages from one stack."),
    )
    guideline = forms.CharField(
        label=_("Guideline"), required=False, max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(self, run: Run, data: Any = None) -> None:
        super().__init__(data)
        others = Run.objects.select_related(Run.NAMED_BY).filter(
            project=run.project_id, answer_set__question_set=run.answer_set.question_set_id
        )
        shown = others.exclude(answer_set=run.answer_set_id).order_by("-id")
        self.fields["runs"].queryset = shown.filter(pk__in=list(shown.values_list("pk", flat=True)[:RUNS_SHOWN]))  # type: ignore[attr-defined]
        people = RoleGrant.objects.filter(project=run.project_id).values("user")
        active = User.objects.filter(pk__in=people, is_active=True).order_by("username")
        self.fields["reviewers"].queryset = active  # type: ignore[attr-defined]


class GradeForm(forms.Form):
    """One grade of one passage."""

    passage = forms.ModelChoiceField(PooledPassage.objects.none())
    value = forms.ChoiceField(choices=PassageRating.Grade.choices)
    reason = forms.CharField(required=False)
    seconds = forms.FloatField(required=False, min_value=0, max_value=86_400)

    def __init__(self, found: RetrievalRepair, data: Any) -> None:
        super().__init__(data)
        self.fields["passage"].queryset = found.passages.filter(sampled=True)  # type: ignore[attr-defined]

    def clean_reason(self) -> str:
        """The reason with line breaks as the browser counted them, one character each."""
        reason: str = self.cleaned_data["reason"]
        return reason.replace("\r\n", "\n")


@signed_in_get
def truth_list(request: HttpRequest) -> HttpResponse:
    """The repairs I lead or rate in."""
    me = person(request)
    drawn = Count("passages", distinct=True, filter=Q(passages__sampled=True))
    said = Q(passages__ratings__isnull=False) & ~Q(passages__ratings__grade=PassageRating.Grade.CANNOT)
    rated = Count("passages", distinct=True, filter=said)
    rows = REPAIRS.of(me).annotate(drawn=drawn, rated=rated)[:50]
    named = set(RetrievalRepair.objects.filter(members__reviewer=me).values_list("pk", flat=True))
    leads = access.projects_with(me, Action.MANAGE_REVIEW).exists()
    shown = {"rows": [(one, one.pk in named) for one in rows], "leads": leads}
    return render(request, "retrieval_truth/list.html", shown)


@signed_in_form
def truth_new(request: HttpRequest) -> HttpResponse:
    """Pool what a run's system and others retrieved, and draw what is to be rated."""
    asked = whole_number(request.POST.get("run") or request.GET.get("run") or "")
    if asked is None:
        raise Http404
    run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, asked)
    form = NewRepairForm(run, request.POST or None)
    if request.method == "POST" and form.is_valid():
        said = dict(form.cleaned_data)
        runs, reviewers = [run, *said.pop("runs")], list(said.pop("reviewers"))
        try:
            made = make_repair(runs, reviewers=reviewers, by=person(request), **said)
        except Refused as refused:
            form.add_error(None, explain_refusal(refused))
        else:
            return redirect("truth", made.pk)
    shown = {"run": run, "form": form, "most": MOST_SYSTEMS}
    return render(request, "retrieval_truth/new.html", shown)


@signed_in_get
def truth(request: HttpRequest, pk: int) -> HttpResponse:
    """What came of a repair, for its leads; whoever only rates is sent to rate."""
    me = person(request)
    found = REPAIRS.get(me, pk)
    if not REPAIRS.leads(me, found):
        return redirect("truth-rate", found.pk)
    result, withheld = None, ""
    try:
        result = results_for(found, me)
    except Refused as refused:
        withheld = explain_refusal(refused)
    shown = {
        "repair": found,
        "result": result,
        "withheld": withheld,
        "verdict": _verdict(result) if result else "",
        "tables": _tables(result) if result else [],
        "differences": _tables(result, differences=True) if result else [],
        "member": found.members.filter(reviewer=me).exists(),
        "systems": list(found.systems.order_by("position").values_list("name", flat=True)),
        "accepted": (accepted := found.accepted.select_related("question_set").order_by("pk").last()),
        "since": newest_since(found, accepted.created_at) if accepted else 0,
    }
    return render(request, "retrieval_truth/repair.html", shown)


def _verdict(result: RepairResult) -> str:
    """The one sentence that comes first."""
    if result.figures[0].value is None:  # precision, which has a value wherever there are ratings enough
        told = {"rated": result.rated, "drawn": result.drawn}
        return gettext("Rated so far: %(rated)d of %(drawn)d. There are no corrected figures yet.") % told
    if not result.better:
        return gettext("By nDCG, which system retrieves better cannot be told: every interval holds no difference.")
    one = next(
        row
        for row in result.figures
        if row.metric == Metric.NDCG and {row.system, row.minus} == {result.better, result.worse}
    )
    gap = numbers.plain(abs(one.value or 0.0), 3)
    told_by = {"better": result.better, "worse": result.worse, "gap": gap}
    return gettext("By nDCG, this system retrieves better — %(better)s over %(worse)s, by %(gap)s.") % told_by


def _tables(result: RepairResult, *, differences: bool = False) -> list[dict[str, Any]]:
    """A table a metric, of systems or of differences."""
    rows = [one for one in result.figures if bool(one.minus) == differences]
    return [
        {"title": TITLES[metric] % {"k": result.k}, "rows": [one for one in rows if one.metric == metric]}
        for metric in Metric
    ]


@signed_in_get
def truth_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The figures or the pool as a file, for leads who have nothing left to rate in it."""
    me = person(request)
    found, wanted = REPAIRS.for_lead(me, pk), request.GET.get("format", "csv")
    if wanted not in REPAIR_EXPORTS.names:
        raise Http404
    try:
        refuse_early(found, me)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("truth", found.pk)
    take_export(me)
    return download(export_repair(found, wanted))


@signed_in_get
def truth_rate(request: HttpRequest, pk: int) -> HttpResponse:
    """The next passage, or one rated before to change one's mind."""
    me = person(request)
    found = REPAIRS.to_rate(me, pk)
    wanted = request.GET.get("passage", "")
    card = card_of(found, me, whole_number(wanted))
    if card is None and wanted:
        raise Http404
    return _rate(request, found, card)


@signed_in_post
def truth_save(request: HttpRequest, pk: int) -> HttpResponse:
    """Store a grade and go on with the next passage."""
    me = person(request)
    found = REPAIRS.to_rate(me, pk)
    form = GradeForm(found, request.POST)
    if not form.is_valid():
        problems = [str(error) for errors in form.errors.values() for error in errors]
        return _not_stored(request, found, form, problems, status=400)
    said = form.cleaned_data
    try:
        rate(found, said["passage"], me, said["value"], reason=said["reason"], seconds=said["seconds"])
    except Refused as refused:
        return _not_stored(request, found, form, [explain_refusal(refused)], status=409)
    return redirect("truth-rate", found.pk)


def _not_stored(
    request: HttpRequest, found: RetrievalRepair, form: GradeForm, problems: Sequence[str], *, status: int
) -> HttpResponse:
    """The passage again with what was entered and why it does not count."""
    card = card_of(found, person(request), whole_number(str(form.data.get("passage", ""))))
    if card is not None:
        grade = str(form.cleaned_data.get("value", card.grade))
        card = card._replace(grade=grade, reason=str(form.data.get("reason", "")))
    return _rate(request, found, card, problems, status)


def _rate(
    request: HttpRequest,
    found: RetrievalRepair,
    card: PassageCard | None,
    problems: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    """A passage to rate. It names no system, no rank and no judge."""
    shown = {
        "repair": found,
        "card": card,
        "last": last_rated(found, person(request)),
        "problems": problems,
        "choices": [(grade.value, grade.label, key) for grade, key in CHOICES],
    }
    return render(request, "retrieval_truth/rate.html", shown, status=status)


@signed_in_post
def truth_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Take no further ratings, or take them again."""
    me = person(request)
    found = REPAIRS.for_lead(me, pk)
    set_open(found, is_open=found.closed_at is not None, by=me)
    return redirect("truth", found.pk)


@signed_in_post
def truth_accept(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the labels over into a new version of the question set."""
    me = person(request)
    found = REPAIRS.for_lead(me, pk)
    try:
        refuse_early(found, me)
        made = accept_labels(found, by=me)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("truth", found.pk)
    return redirect("question-set", made.question_set_id)


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
