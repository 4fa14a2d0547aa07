"""Pages of generated questions: plan and start a generation, decide on questions, create the question set."""

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
from contrib.corpora.selectors import get_chunks
from contrib.generation.forms import KIND_LABELS, DraftForm, GenerationForm
from contrib.generation.models import DraftDecision, DraftQuestion, Generation
from contrib.generation.runner import enqueue_generation, write_questions
from contrib.generation.selectors import (
    DraftCounts,
    Overview,
    acceptance_by_writer,
    draft_counts,
    latest_decision,
    overview,
)
from contrib.generation.services import create_question_set, decide, edit_content, open_generation, plan_generation
from evaluation.accounts import access
from evaluation.accounts.access import may, signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages.explanations import explain, explain_refusal
from evaluation.models import JudgeVersion
from evaluation.runs.planning import plan_sentences

GENERATIONS = Generation.objects.select_related("corpus__project", "judge_version", "result").annotate(
    waits_for=write_questions.problem()
)
PATH = "corpus__project_id"
MAX_LISTED = 100
# Questions on a page, each with passages and a form.
PAGE_SIZE = 10
Verb = DraftDecision.Verb


@signed_in_get
def generation_list(request: HttpRequest) -> HttpResponse:
    """List the generations of the user's projects, and the acceptance by generator version."""
    projects = access.projects_with(request.user, Action.EVALUATE)
    if not projects.exists():
        raise PermissionDenied
    rows = list(access.visible(GENERATIONS, request.user, Action.EVALUATE, path=PATH).order_by("-pk")[:MAX_LISTED])
    counts = draft_counts(rows)
    context = {
        "generations": [(generation, counts.get(generation.pk, DraftCounts())) for generation in rows],
        "writers": [(project, acceptance_by_writer(project)) for project in projects],
    }
    return render(request, "generation/list.html", context)


@signed_in_form
def generation_new(request: HttpRequest) -> HttpResponse:
    """Show the plan of a generation first, then start it."""
    if not access.projects_with(request.user, Action.EVALUATE).exists():
        raise PermissionDenied
    corpora = access.visible(Corpus.objects.all(), request.user, Action.EVALUATE, path="project_id")
    judges = access.visible(
        JudgeVersion.objects.exclude(endpoint=None), request.user, Action.EVALUATE, path="project_id"
    )
    initial = {"corpus": parse_int(request.GET.get("corpus", ""), 18), "language": request.LANGUAGE_CODE}
    form = GenerationForm(corpora.order_by("-pk"), judges.order_by("-pk"), request.POST or None, initial=initial)
    plan_lines: list[str] = []
    if request.method == "POST" and form.is_valid():
        corpus, judge = form.cleaned_data["corpus"], form.cleaned_data["judge"]
        try:
            if "begin" in request.POST:
                generation = open_generation(corpus, judge, form.spec, by=signed_in_user(request))
                enqueue_generation(generation)
                return redirect("generation", generation.pk)
            plan_lines = plan_sentences(plan_generation(corpus, judge, form.spec))
        except DomainError as error:
            form.add_error(None, explain_refusal(error))
    return render(request, "generation/new.html", {"form": form, "takes": plan_lines})


@dataclass(frozen=True, slots=True)
class DraftRow:
    """A question with its kind, the decision and content that count, and its passages."""

    draft: DraftQuestion
    kind: Any
    decision: DraftDecision | None
    content: dict[str, Any]
    passages: list[Chunk]
    form: DraftForm


@dataclass(frozen=True, slots=True)
class GenerationPage:
    """Context of a generation's page.

    ``rows`` are those of ``show``: waiting, accepted, rejected or removed. ``query``, ``previous_url`` and ``next_url``
    are query strings of this, the previous and the next page."""

    generation: Generation
    overview: Overview
    show: str
    rows: list[DraftRow]
    query: str
    previous_url: str
    next_url: str
    removed: list[tuple[str, int]]
    may_decide: bool


@signed_in_get
def generation(request: HttpRequest, pk: int) -> HttpResponse:
    """Show progress, removals by filter, and the questions to decide on."""
    generation = access.fetch(GENERATIONS, request.user, Action.EVALUATE, pk, path=PATH)
    summary = overview(generation)
    show = request.GET.get("show", "waiting" if summary.waiting else "accepted")
    labels = dict(DraftQuestion.Filter.choices)
    drafts = ((draft, latest_decision(draft)) for draft in generation.drafts.prefetch_related("decisions"))
    pages = Paginator([row for row in drafts if _draft_status(*row) == show], PAGE_SIZE)
    current = pages.get_page(request.GET.get("page"))
    page = GenerationPage(
        generation=generation,
        overview=summary,
        show=show,
        rows=_rows(generation, list(current)),
        query=_page_query(show, current.number),
        previous_url=_page_query(show, current.number - 1) if current.has_previous() else "",
        next_url=_page_query(show, current.number + 1) if current.has_next() else "",
        removed=[(str(labels[name]), count) for name, count in summary.removed.items()],
        may_decide=may(request.user, generation.corpus.project_id, Action.MANAGE_REVIEW),
    )
    return render(request, "generation/generation.html", {"page": page})


def _page_query(show: str, number: int) -> str:
    return f"?{urlencode({'show': show, 'page': number})}"


def _rows(generation: Generation, rows: Sequence[tuple[DraftQuestion, DraftDecision | None]]) -> list[DraftRow]:
    ids = {id_ for draft, _ in rows for id_ in draft.content["group"].split("+")}
    chunks = get_chunks(generation.corpus, ids)
    return [
        DraftRow(
            draft,
            KIND_LABELS.get(draft.kind, draft.kind),
            decision,
            content := (decision and decision.content) or draft.content,
            [chunks[id_] for id_ in draft.content["group"].split("+") if id_ in chunks],
            DraftForm.for_draft(draft, content),
        )
        for draft, decision in rows
    ]


def _draft_status(draft: DraftQuestion, decision: DraftDecision | None) -> str:
    """Return ``accepted`` or ``rejected`` by a lead, ``removed`` by a filter, else ``waiting``."""
    return decision.verb if decision else "removed" if draft.removed_by else "waiting"


@signed_in_post
def draft_decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept a question, optionally with edits, or reject it; then show the next one."""
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
                raise DomainError("draft_empty")
            content = edit_content(draft, form.content)
        if verb not in Verb.values:
            raise DomainError("draft_verb")
        decide(draft, verb, by=signed_in_user(request), content=content)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
    return redirect(f"{reverse('generation', args=[draft.generation_id])}?{request.GET.urlencode()}#questions")


@signed_in_post
def generation_resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume a blocked generation."""
    generation = access.fetch(GENERATIONS, request.user, Action.EVALUATE, pk, path=PATH)
    enqueue_generation(generation)
    return redirect("generation", generation.pk)


@signed_in_post
def generation_set(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a version of the question set from the accepted questions."""
    generation = access.fetch(GENERATIONS, request.user, Action.MANAGE_REVIEW, pk, path=PATH)
    try:
        imported = create_question_set(generation, by=signed_in_user(request))
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("generation", generation.pk)
    messages.success(request, explain(imported.note))
    return redirect("question-set", imported.question_set.pk)


urlpatterns = [
    path("generations/", generation_list, name="generation-list"),
    path("generations/new/", generation_new, name="generation-new"),
    path("generations/<int:pk>/", generation, name="generation"),
    path("generations/<int:pk>/resume/", generation_resume, name="generation-resume"),
    path("generations/<int:pk>/set/", generation_set, name="generation-set"),
    path("generations/questions/<int:pk>/", draft_decide, name="draft-decide"),
]
