"""Views of the judge prompt workbench: gold sets, drafts, validation runs, searches and hold-out tests.

Pages reveal only the size of a hold-out and the outcome of its tests."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import wraps

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext

from evaluation.accounts import access
from evaluation.accounts.access import may, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError, InvalidFile, UnknownName
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import draft, opened_lineage, propose
from evaluation.judging.rubric import parse_rubric
from evaluation.messages.explanations import explain, explain_refusal, translate_parser_message
from evaluation.models import JudgeVersion, RubricVersion, Run
from review.calibration.anchors import latest_passed_result, request_check
from review.calibration.forms import WordingForm
from review.calibration.holdout_tests import request_holdout_test
from review.calibration.openings import hold_out_openings, open_hold_outs
from review.calibration.overview import labelled_families, overview, preview
from review.calibration.pages import (
    EMPTY_DRAFT,
    DraftInput,
    TrialResult,
    is_pending,
    shortage_text,
    trial_result,
    workbench_page,
)
from review.calibration.retirement import HoldoutResult, holdout_results, retire
from review.calibration.search import MAX_ROUNDS, open_search, request_search
from review.calibration.versions import freeze, grow, is_retired, secret_seed
from review.calibration.workbench import Workbench, load_workbench, start_validation_runs, try_version
from review.evidence.answers import record_answer_exposure
from review.evidence.scorers import metric_titles
from review.evidence.seals import LabelForm, label_form
from review.models import GoldItem, GoldSet, Rating, Search
from review.statistics.acceptance import Claim

MAX_RUN_CHOICES = 30
# With the language that the first question's set declares.
GOLD_SETS = GoldSet.objects.select_related("project").annotate(
    language=GoldItem.objects.filter(gold_set=OuterRef("pk")).values(
        "answer__question__question_set__metadata__language"
    )[:1]
)


@signed_in_get
def calibration_list(request: HttpRequest) -> HttpResponse:
    """List the gold sets of the user's projects in their newest version; leads can freeze a new one."""
    projects = access.projects_with(request.user, Action.EVALUATE)
    if not projects.exists():
        raise PermissionDenied
    newest = {(row.project_id, row.name): row for row in GOLD_SETS.filter(project__in=projects).order_by("version")}
    gold_sets = [(row, overview(row)) for row in sorted(newest.values(), key=_reading_order)]
    runs = _rated_runs(request)
    run = next((run for run in runs if str(run.pk) == request.GET.get("run")), runs[0] if runs else None)
    labels = preview(run) if run else ()
    metrics = [*labels, *(metric for _, gold in gold_sets for metric in gold.metrics)]
    context = {
        "gold_sets": gold_sets,
        "titles": metric_titles(metric.metric for metric in metrics),
        "runs": runs,
        "run": run,
        "labels": [(row, shortage_text(None if row.is_testable else row)) for row in labels],
    }
    return render(request, "review/calibration/calibration.html", context)


def _language(gold_set: GoldSet) -> str:
    return getattr(gold_set, "language", None) or ""


def _reading_order(gold_set: GoldSet) -> tuple[bool, int]:
    """Gold sets in the reader's language first, then the newest."""
    return _language(gold_set) != get_language(), -gold_set.pk


def _rated_runs(request: HttpRequest, project_id: int = 0) -> list[Run]:
    """Return the newest run of each rated answer set in projects the user leads, preferably over all questions."""
    rated = Rating.objects.filter(phase="initial", blind=True).values("answer__answer_set")
    rows = access.visible(
        Run.objects.select_related("answer_set__question_set", Run.NAME_RELATION), request.user, Action.MANAGE_REVIEW
    )
    rows = rows.filter(answer_set__in=rated, **({"project": project_id} if project_id else {}))
    newest: dict[int, Run] = {}
    # Runs of the workbench cover only some questions of an answer set.
    for run in sorted(rows.order_by("-pk"), key=lambda run: bool(run.config.get("question_ids"))):
        newest.setdefault(run.answer_set_id, run)
    return list(newest.values())[:MAX_RUN_CHOICES]


@signed_in_post
def calibration_freeze(request: HttpRequest) -> HttpResponse:
    """Freeze the blind first ratings of a run's answers as a gold set."""
    run = _fetch_run(request)
    try:
        gold_set = freeze(run, request.POST.get("name", "").strip(), by=signed_in_user(request), seed=secret_seed())
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("calibration-list")
    messages.success(request, gettext("%(gold)s was frozen and split.") % {"gold": gold_set})
    return redirect("calibration", gold_set.pk)


@signed_in_post
def calibration_grow(request: HttpRequest, pk: int) -> HttpResponse:
    """Create the next version of a gold set with the labels of a run's answers."""
    gold_set: GoldSet = access.fetch(GOLD_SETS, request.user, Action.MANAGE_REVIEW, pk, path="project_id")
    run = _fetch_run(request)
    if run.project_id != gold_set.project_id:
        raise Http404
    try:
        gold_set = grow(run, gold_set.name, by=signed_in_user(request))
        messages.success(request, gettext("%(gold)s was frozen and split.") % {"gold": gold_set})
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
    return redirect("calibration", gold_set.pk)


@signed_in_post
def calibration_retire(request: HttpRequest, pk: int) -> HttpResponse:
    """Retire a gold set, which reveals the results of its hold-out tests."""
    gold_set = access.fetch(GOLD_SETS, request.user, Action.MANAGE_REVIEW, pk, path="project_id")
    try:
        retire(gold_set, by=signed_in_user(request), reason=request.POST.get("reason", ""))
        messages.success(request, gettext("%(gold)s was retired.") % {"gold": gold_set.name})
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
    return redirect("calibration", gold_set.pk)


@signed_in_post
def calibration_open(request: HttpRequest, pk: int) -> HttpResponse:
    """Open full figures with sealed labels for a lead, which is recorded."""
    gold_set = access.fetch(GOLD_SETS, request.user, Action.ACTIVATE, pk, path="project_id")
    try:
        openings = open_hold_outs(gold_set.project, by=signed_in_user(request))
        message = gettext("You now see full figures and can no longer draft or propose prompts tested on %(gold)s.")
        messages.success(request, message % {"gold": ", ".join(opening.lineage for opening in openings)})
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
    return redirect("calibration", gold_set.pk)


def _fetch_run(request: HttpRequest) -> Run:
    run_id = parse_int(request.POST.get("run", ""), 18) or 0
    return access.fetch(Run.objects.select_related("project"), request.user, Action.MANAGE_REVIEW, run_id)


class NoWorkbench(Exception):
    """No judge of the project reads rubrics, or no metric of a rubric is labelled."""


def _rubric_judges(gold_set: GoldSet) -> list[JudgeVersion]:
    """Return the newest version of each judge that reads rubrics, those in the language of the questions first."""
    rows = JudgeVersion.objects.filter(project=gold_set.project_id).exclude(endpoint=None)
    newest = {judge.name: judge for judge in rows.select_related("endpoint", "project").order_by("version")}
    return sorted(newest.values(), key=lambda judge: (judge.language != _language(gold_set), judge.name))


def _load_workbench(
    gold_set: GoldSet, query: QueryDict
) -> tuple[Workbench, RubricVersion, list[JudgeVersion], list[str]]:
    """Load the workbench of the requested judge, family and version; by default the first ones and the newest draft.

    :raises Http404: for an unknown judge or family.
    :raises NoWorkbench: without a judge or labelled family."""
    judges, families = _rubric_judges(gold_set), labelled_families(gold_set)
    if not judges or not families:
        raise NoWorkbench
    judge = _find_judge(judges, query.get("judge", ""))
    family = query.get("family") or families[0]
    if family not in families:
        raise Http404
    workbench = load_workbench(gold_set, judge, family)
    # Loading the workbench creates the shipped version. Versions of another language or family are left out.
    versions = [workbench.active, *reversed(workbench.versions)]
    if rubric_id := query.get("rubric", ""):
        rubric = next((version for version in workbench.versions if str(version.pk) == rubric_id), None)
        return workbench, rubric or workbench.active, judges, families
    return (
        workbench,
        next(
            (version for version in versions if workbench.statuses.status_of(version) in {"draft", "candidate"}),
            versions[0],
        ),
        judges,
        families,
    )


def _find_judge(judges: list[JudgeVersion], judge_id: str) -> JudgeVersion:
    if not judge_id:
        return judges[0]
    judge = next((candidate for candidate in judges if str(candidate.pk) == judge_id), None)
    if judge is None:
        raise Http404
    return judge


@signed_in_get
def calibration(request: HttpRequest, pk: int) -> HttpResponse:
    gold_set = access.fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id")
    return _render_workbench(request, gold_set, request.GET)


def _render_workbench(
    request: HttpRequest,
    gold_set: GoldSet,
    query: QueryDict,
    *,
    draft_input: DraftInput = EMPTY_DRAFT,
    trial: TrialResult | None = None,
    status: int = 200,
) -> HttpResponse:
    leads = may(request.user, gold_set.project_id, Action.ACTIVATE)
    context = {
        "leads": leads,
        "runs": _rated_runs(request, gold_set.project_id) if leads else [],
        "retired_results": _retired_results(gold_set),
        "openings": hold_out_openings(gold_set),
        "sees_full": label_form(gold_set.project_id) is LabelForm.FULL,
    }
    try:
        workbench, version, judges, families = _load_workbench(gold_set, query)
    except NoWorkbench:
        gold = overview(gold_set)
        gold_context = {"gold_set": gold_set, "gold": gold, "judges": _rubric_judges(gold_set)}
        gold_context |= {"titles": metric_titles(metric.metric for metric in gold.metrics)}
        return render(request, "review/calibration/workbench_none.html", context | gold_context)
    if "HX-Request" in request.headers and is_pending(workbench, version):
        return HttpResponse(status=204)
    page = workbench_page(
        workbench,
        version,
        judges=judges,
        families=families,
        query=query,
        leads=leads,
        opened=opened_lineage(gold_set.project_id, workbench.family, signed_in_user(request)),
        draft_input=draft_input,
        trial=trial,
    )
    record_answer_exposure(request.user, [case.disagreement.item.answer_id for case in page.cases], "workbench")
    return render(
        request,
        "review/calibration/workbench.html",
        context
        | {
            "page": page,
            "titles": metric_titles((*(metric.metric for metric in page.gold.metrics), *page.version.rubric.names)),
        },
        status=status,
    )


def _retired_results(gold_set: GoldSet) -> list[HoldoutResult]:
    """Return the results of hold-out tests of a retired lineage."""
    return holdout_results(gold_set) if is_retired(gold_set.project_id, gold_set.name) else []


def _workbench_action(action: Action) -> Callable[[Callable[..., HttpResponse | None]], Callable[..., HttpResponse]]:
    """Wrap a POST on a version: load the workbench, show refusals as messages, and redirect to the workbench."""

    def decorate(view: Callable[..., HttpResponse | None]) -> Callable[..., HttpResponse]:
        @signed_in_post
        @wraps(view)
        def wrapped(request: HttpRequest, pk: int) -> HttpResponse:
            gold_set = access.fetch(GOLD_SETS, request.user, action, pk, path="project_id")
            try:
                workbench, version, *_others = _load_workbench(gold_set, request.POST)
            except NoWorkbench as error:
                raise Http404 from error
            try:
                response = view(request, workbench, version)
            except DomainError as refusal:
                messages.error(request, explain_refusal(refusal))
                response = None
            return response or _redirect_to_workbench(workbench, version)

        return wrapped

    return decorate


def _redirect_to_workbench(workbench: Workbench, version: RubricVersion, anchor: str = "") -> HttpResponse:
    query = f"judge={workbench.judge.pk}&family={workbench.family}&rubric={version.pk}"
    return redirect(f"{reverse('calibration', args=[workbench.gold_set.pk])}?{query}{anchor}")


@_workbench_action(Action.EVALUATE)
def calibration_draft(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Save the plain fields, or a text in YAML, as a draft."""
    text, note = request.POST.get("text"), request.POST.get("note", "")
    project, errors = workbench.gold_set.project, list[str]()
    form = WordingForm(version.rubric, request.POST) if text is None else None
    try:
        if form is None or form.is_valid():
            rubric = form.rubric() if form else parse_rubric(text or "")
            if (rubric.family, rubric.language) != (workbench.family, workbench.scope.language):
                raise DomainError("rubric_other_family", family=workbench.family, language=workbench.scope.language)
            saved_draft = draft(project, rubric, by=signed_in_user(request), note=note)
            messages.success(request, gettext("Saved as %(version)s.") % {"version": saved_draft})
            return _redirect_to_workbench(workbench, saved_draft, "#compare")
    except InvalidFile as refusal:
        errors = [explain(problem) for problem in refusal.problems]
    except UnknownName as unknown:
        errors = [translate_parser_message(str(unknown))]
    except DomainError as refusal:
        errors = [explain_refusal(refusal)]
    draft_input = DraftInput(form, text or "", note, errors)
    return _render_workbench(request, workbench.gold_set, request.POST, draft_input=draft_input, status=400)


@_workbench_action(Action.EVALUATE)
def calibration_try(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Judge one open answer by the version without storing the result."""
    answer = parse_int(request.POST.get("answer", ""), 18) or 0
    results = try_version(workbench, version, answer)
    question = next(item.answer.question.text for item in workbench.items if item.answer_id == answer)
    return _render_workbench(
        request, workbench.gold_set, request.POST, trial=trial_result(question, workbench, dict(results))
    )


@_workbench_action(Action.EVALUATE)
def calibration_run(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Judge examples and validation by the version and the active one."""
    runs = start_validation_runs(workbench, version, by=signed_in_user(request))
    message = gettext("Judging examples and validation answers: %(runs)s.")
    messages.success(request, message % {"runs": ", ".join(f"#{run.pk}" for run in runs)})
    is_active = version.pk == workbench.active.pk
    return _redirect_to_workbench(workbench, version, "#differ" if is_active else "#compare")


@_workbench_action(Action.EVALUATE)
def calibration_offer(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Propose the draft as a candidate."""
    propose(version, workbench.judge, by=signed_in_user(request))
    messages.success(request, gettext("Submitted. A lead can now run the hold-out test."))
    return None


class SearchForm(forms.Form):
    """Strategy, rounds and budget of a search."""

    strategy = forms.ChoiceField(choices=Search.Strategy.choices)
    rounds = forms.IntegerField(min_value=1, max_value=MAX_ROUNDS, initial=3, required=False)
    budget = forms.DecimalField(max_digits=12, decimal_places=4, min_value=Decimal("0.0001"), required=False)


@_workbench_action(Action.EVALUATE)
def calibration_search(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Start a search, or resume a stalled one."""
    form = SearchForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return None
    fields = form.cleaned_data
    options = {"by": signed_in_user(request), "rounds": fields["rounds"] or 1, "budget": fields["budget"]}
    search = open_search(workbench.gold_set, workbench.judge, workbench.family, fields["strategy"], **options)
    request_search(search)
    messages.success(request, gettext("Search running: %(search)s.") % {"search": search})
    return None


@_workbench_action(Action.ACTIVATE)
def calibration_check(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Request an anchor check of the active version."""
    passed_result = latest_passed_result(workbench.judge, version)
    if passed_result is None:
        raise DomainError("anchors_not_approved", rubric=str(version))
    request_check(passed_result, by=signed_in_user(request))
    messages.success(request, gettext("Judging the anchors again. This page will show whether the judge has drifted."))
    return None


@_workbench_action(Action.ACTIVATE)
def calibration_look(request: HttpRequest, workbench: Workbench, version: RubricVersion) -> HttpResponse | None:
    """Request a hold-out test."""
    claim, reference_judge = Claim.BETTER, None
    if (choice := request.POST.get("claim", "")) == Claim.NOT_WORSE:
        claim = Claim.NOT_WORSE
    elif choice.startswith("beside:"):
        claim, reference_judge = (
            Claim.NOT_WORSE,
            _find_judge(_rubric_judges(workbench.gold_set), choice.removeprefix("beside:")),
        )
    test = request_holdout_test(
        workbench.gold_set,
        workbench.judge,
        version,
        by=signed_in_user(request),
        claim=claim,
        reference_judge=reference_judge,
    )
    message = gettext("Hold-out test running: %(test)s. The result will be “accepted” or “not accepted”.")
    messages.success(request, message % {"test": test})
    return _redirect_to_workbench(workbench, version, "#accept")
