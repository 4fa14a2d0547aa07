"""Generated questions: having them written, with what it takes; deciding on each beside its passages; and making the
accepted ones a question set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse

from contrib.corpora.models import Chunk, Corpus
from contrib.corpora.selectors import chunks_named
from contrib.generation.forms import KIND_LABELS, DraftForm, GenerationForm
from contrib.generation.models import DraftDecision, DraftQuestion, Generation
from contrib.generation.selectors import Counts, Overview, acceptance_by_writer, counts_of, decided, overview
from contrib.generation.services import decide, edited, make_set, open_generation, plan_of
from contrib.generation.working import ask_for, write_questions
from evaluation.accounts import access
from evaluation.accounts.access import may, person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import JudgeVersion
from evaluation.runs.planning import plan_sentences

GENERATIONS = Generation.objects.select_related("corpus__project", "judge_version", "result").annotate(
    waits_for=write_questions.problem()
)
PATH = "corpus__project_id"
SHOWN = 100
ON_A_PAGE = 10  # questions with their passages and forms: as many as somebody decides on before the page grows slow
Verb = DraftDecision.Verb


@signed_in_get
def generation_list(request: HttpRequest) -> HttpResponse:
    """The generations of one's projects, and how much of what each version of the generator wrote was accepted."""
    projects = access.projects_with(request.user, Action.EVALUATE)
    if not projects.exists():
        raise PermissionDenied
    rows = list(access.visible(GENERATIONS, request.user, Action.EVALUATE, path=PATH).order_by("-pk")[:SHOWN])
    counts = counts_of(rows)
    shown = {
        "generations": [(one, counts.get(one.pk, Counts())) for one in rows],
        "writers": [(project, acceptance_by_writer(project)) for project in projects],
    }
    return render(request, "generation/list.html", shown)


@signed_in_form
def generation_new(request: HttpRequest) -> HttpResponse:
    """What is to be written; first what it takes is told, then it begins."""
    if not access.projects_with(request.user, Action.EVALUATE).exists():
        raise PermissionDenied
    corpora = access.visible(Corpus.objects.all(), request.user, Action.EVALUATE, path="project_id")
    judges = access.visible(
        JudgeVersion.objects.exclude(endpoint=None), request.user, Action.EVALUATE, path="project_id"
    )
    initial = {"corpus": whole_number(request.GET.get("corpus", ""), 18), "language": request.LANGUAGE_CODE}
    form = GenerationForm(corpora.order_by("-pk"), judges.order_by("-pk"), request.POST or None, initial=initial)
    takes: list[str] = []
    if request.method == "POST" and form.is_valid():
        corpus, judge = form.cleaned_data["corpus"], form.cleaned_data["judge"]
        try:
            if "begin" in request.POST:
                made = open_generation(corpus, judge, form.wanted, by=person(request))
                ask_for(made)
                return redirect("generation", made.pk)
            takes = plan_sentences(plan_of(corpus, judge, form.wanted))
        except Refused as refused:
            form.add_error(None, explain_refusal(refused))
    return render(request, "generation/new.html", {"form": form, "takes": takes})


@dataclass(frozen=True, slots=True)
class DraftRow:
    """A question with its kind in words, the decision and the words that count, and the passages it is about."""

    draft: DraftQuestion
    kind: Any
    decision: DraftDecision | None
    content: dict[str, Any]
    passages: list[Chunk]
    form: DraftForm


@dataclass(frozen=True, slots=True)
class GenerationPage:
    """``rows`` are of the ``show``: waiting, accepted, rejected, removed; ``here``, ``back``, ``on`` query strings."""

    generation: Generation
    seen: Overview
    show: str
    rows: list[DraftRow]
    here: str
    back: str
    on: str
    removed: list[tuple[str, int]]
    decides: bool


@signed_in_get
def generation(request: HttpRequest, pk: int) -> HttpResponse:
    """How far it is, what the filters took out, and the questions to decide on."""
    one = access.fetch(GENERATIONS, request.user, Action.EVALUATE, pk, path=PATH)
    seen = overview(one)
    show = request.GET.get("show", "waiting" if seen.waiting else "accepted")
    labels = dict(DraftQuestion.Filter.choices)
    found = ((draft, decided(draft)) for draft in one.drafts.prefetch_related("decisions"))
    pages = Paginator([row for row in found if _stands(*row) == show], ON_A_PAGE)
    here = pages.get_page(request.GET.get("page"))
    page = GenerationPage(
        generation=one,
        seen=seen,
        show=show,
        rows=_rows(one, list(here)),
        here=_query(show, here.number),
        back=_query(show, here.number - 1) if here.has_previous() else "",
        on=_query(show, here.number + 1) if here.has_next() else "",
        removed=[(str(labels[name]), many) for name, many in seen.removed.items()],
        decides=may(request.user, one.corpus.project_id, Action.MANAGE_REVIEW),
    )
    return render(request, "generation/generation.html", {"page": page})


def _query(show: str, number: int) -> str:
    return f"?{urlencode({'show': show, 'page': number})}"


def _rows(one: Generation, rows: Sequence[tuple[DraftQuestion, DraftDecision | None]]) -> list[DraftRow]:
    ids = {id_ for draft, _ in rows for id_ in draft.content["group"].split("+")}
    chunks = chunks_named(one.corpus, ids)
    return [
        DraftRow(
            draft,
            KIND_LABELS.get(draft.kind, draft.kind),
            decision,
            content := (decision and decision.content) or draft.content,
            [chunks[id_] for id_ in draft.content["group"].split("+") if id_ in chunks],
            DraftForm.of(draft, content),
        )
        for draft, decision in rows
    ]


def _stands(draft: DraftQuestion, decision: DraftDecision | None) -> str:
    """Where a question is shown: ``accepted`` or ``rejected`` by a lead, ``removed`` by a filter, else ``waiting``."""
    return decision.verb if decision else "removed" if draft.removed_by else "waiting"


@signed_in_post
def draft_decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept a question as it is or as it was edited, or reject it; then the next one."""
    draft = access.fetch(
        DraftQuestion.objects.select_related("generation__corpus"),
        *(request.user, Action.MANAGE_REVIEW, pk),
        path="generation__corpus__project_id",
    )
    verb = request.POST.get("verb", "")
    content = None
    try:
        if "text" in request.POST and verb == Verb.ACCEPTED:
            form = DraftForm(request.POST)
            if not form.is_valid():
                raise Refused("draft_empty")
            content = edited(draft, form.content)
        if verb not in Verb.values:
            raise Refused("draft_verb")
        decide(draft, verb, by=person(request), content=content)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect(f"{reverse('generation', args=[draft.generation_id])}?{request.GET.urlencode()}#questions")


@signed_in_post
def generation_go_on(request: HttpRequest, pk: int) -> HttpResponse:
    """Try again what stands still."""
    one = access.fetch(GENERATIONS, request.user, Action.EVALUATE, pk, path=PATH)
    ask_for(one)
    return redirect("generation", one.pk)


@signed_in_post
def generation_set(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the accepted questions a version of the question set."""
    one = access.fetch(GENERATIONS, request.user, Action.MANAGE_REVIEW, pk, path=PATH)
    try:
        made = make_set(one, by=person(request))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("generation", one.pk)
    messages.success(request, explain(made.note))
    return redirect("question-set", made.question_set.pk)


urlpatterns = [
    path("generations/", generation_list, name="generation-list"),
    path("generations/new/", generation_new, name="generation-new"),
    path("generations/<int:pk>/", generation, name="generation"),
    path("generations/<int:pk>/go-on/", generation_go_on, name="generation-go-on"),
    path("generations/<int:pk>/set/", generation_set, name="generation-set"),
    path("generations/questions/<int:pk>/", draft_decide, name="draft-decide"),
]
