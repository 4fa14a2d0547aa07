"""The workbench of judge prompts: gold sets are frozen and grow, drafts are written beside their disagreements, tried,
run on validation, offered, and looked at. Of a hold-out no page tells anything but its size and a look's word."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import wraps

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import may, person, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import InvalidFile, Refused, UnknownName
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import draft, opened_lineage, propose
from evaluation.judging.rubric import parse_rubric
from evaluation.messages.sentences import explain, explain_refusal, in_words
from evaluation.models import JudgeVersion, RubricVersion, Run
from review.calibration.anchors import ask_for_check, proof_of
from review.calibration.freezing import freeze, grow, is_retired, secret_seed
from review.calibration.looking import ask_for_look
from review.calibration.opening import open_hold_outs, openings_of
from review.calibration.overview import families_in, overview
from review.calibration.pages import NOTHING, Entered, Tried, tried_of, workbench_page
from review.calibration.retiring import HeldOut, hold_out_figures, retire
from review.calibration.searching import MOST_ROUNDS, ask_for_search, open_search
from review.calibration.workbench import Bench, bench_of, try_on, validate
from review.evidence.answers import expose_answers
from review.evidence.scorers import titles_of
from review.evidence.seals import Form, form_of
from review.models import GoldSet, Rating, Search
from review.statistics.acceptance import Claim

OFFERED_RUNS = 30
GOLD_SETS = GoldSet.objects.select_related("project")


@signed_in_get
def calibration_list(request: HttpRequest) -> HttpResponse:
    """The gold sets of one's projects, each in its newest version; leads freeze a new one from a rated run."""
    projects = access.projects_with(request.user, Action.EVALUATE)
    if not projects.exists():
        raise PermissionDenied
    newest = {(one.project_id, one.name): one for one in GOLD_SETS.filter(project__in=projects).order_by("version")}
    gold_sets = [(one, overview(one)) for one in sorted(newest.values(), key=lambda one: -one.pk)]
    shown = {
        "gold_sets": gold_sets,
        "titles": titles_of(one.metric for _, gold in gold_sets for one in gold.metrics),
        "runs": _rated_runs(request),
    }
    return render(request, "review/calibration/calibration.html", shown)


def _rated_runs(request: HttpRequest, project_id: int = 0) -> list[Run]:
    """The newest run of each rated answer set in projects the person leads."""
    rated = Rating.objects.filter(phase="initial", blind=True).values("answer__answer_set")
    rows = access.visible(
        Run.objects.select_related("answer_set__question_set", Run.NAMED_BY), request.user, Action.MANAGE_REVIEW
    )
    rows = rows.filter(answer_set__in=rated, **({"project": project_id} if project_id else {}))
    newest: dict[int, Run] = {}
    for run in rows.order_by("-pk"):
        newest.setdefault(run.answer_set_id, run)
    return list(newest.values())[:OFFERED_RUNS]


@signed_in_post
def calibration_freeze(request: HttpRequest) -> HttpResponse:
    """Freeze the blind first ratings of a run's answers as a gold set."""
    run = _run(request)
    try:
        made = freeze(run, request.POST.get("name", "").strip(), by=person(request), seed=secret_seed())
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("calibration-list")
    messages.success(request, gettext("%(gold)s is frozen and split.") % {"gold": made})
    return redirect("calibration", made.pk)


@signed_in_post
def calibration_grow(request: HttpRequest, pk: int) -> HttpResponse:
    """The next version of a gold set, with the labels of a run's answers."""
    gold_set = access.fetch(GOLD_SETS, request.user, Action.MANAGE_REVIEW, pk, path="project_id")
    run = _run(request)
    if run.project_id != gold_set.project_id:
        raise Http404
    try:
        gold_set = grow(run, gold_set.name, by=person(request))
        messages.success(request, gettext("%(gold)s is frozen and split.") % {"gold": gold_set})
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("calibration", gold_set.pk)


@signed_in_post
def calibration_retire(request: HttpRequest, pk: int) -> HttpResponse:
    """Let nobody look at the hold-out any more, and tell what looks saw."""
    gold_set = access.fetch(GOLD_SETS, request.user, Action.MANAGE_REVIEW, pk, path="project_id")
    try:
        retire(gold_set, by=person(request), reason=request.POST.get("reason", ""))
        messages.success(request, gettext("%(gold)s is retired.") % {"gold": gold_set.name})
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("calibration", gold_set.pk)


@signed_in_post
def calibration_open(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a lead all figures with the sealed labels, which is recorded."""
    gold_set = access.fetch(GOLD_SETS, request.user, Action.ACTIVATE, pk, path="project_id")
    try:
        opened = open_hold_outs(gold_set.project, by=person(request))
        message = gettext("You see full figures now. You cannot draft or propose prompts that are tested on %(gold)s.")
        messages.success(request, message % {"gold": ", ".join(opening.lineage for opening in opened)})
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("calibration", gold_set.pk)


def _run(request: HttpRequest) -> Run:
    wanted = whole_number(request.POST.get("run", ""), 18) or 0
    return access.fetch(Run.objects.select_related("project"), request.user, Action.MANAGE_REVIEW, wanted)


class NoBench(Exception):
    """There is no judge that reads rubrics, or no label of a metric that one gives."""


def _judges(gold_set: GoldSet) -> list[JudgeVersion]:
    """The newest version of each judge of the project that reads rubrics."""
    rows = JudgeVersion.objects.filter(project=gold_set.project_id).exclude(endpoint=None)
    newest = {one.name: one for one in rows.select_related("endpoint", "project").order_by("version")}
    return [newest[name] for name in sorted(newest)]


def _bench(gold_set: GoldSet, asked: QueryDict) -> tuple[Bench, RubricVersion, list[JudgeVersion], list[str]]:
    """What the address names: judge, family and version; else the first judge and family, and the newest draft.

    :raises Http404: for one that is not there.
    :raises NoBench: where there is none.
    """
    judges, families = _judges(gold_set), families_in(gold_set)
    if not judges or not families:
        raise NoBench
    judge = _chosen(judges, asked.get("judge", ""))
    family = asked.get("family") or families[0]
    if family not in families:
        raise Http404
    bench = bench_of(gold_set, judge, family)
    # the shipped version comes into being with the bench; a version of another language or family is none of it
    known = [bench.active, *reversed(bench.versions)]
    if wanted := asked.get("rubric", ""):
        rubric = next((one for one in bench.versions if str(one.pk) == wanted), None)
        return bench, rubric or bench.active, judges, families
    return (
        bench,
        next((one for one in known if bench.stand.of(one) in {"draft", "candidate"}), known[0]),
        judges,
        families,
    )


def _chosen(judges: list[JudgeVersion], wanted: str) -> JudgeVersion:
    if not wanted:
        return judges[0]
    found = next((one for one in judges if str(one.pk) == wanted), None)
    if found is None:
        raise Http404
    return found


@signed_in_get
def calibration(request: HttpRequest, pk: int) -> HttpResponse:
    """The workbench."""
    gold_set = access.fetch(GOLD_SETS, request.user, Action.EVALUATE, pk, path="project_id")
    return _page(request, gold_set, request.GET)


def _page(
    request: HttpRequest,
    gold_set: GoldSet,
    asked: QueryDict,
    *,
    entered: Entered = NOTHING,
    tried: Tried | None = None,
    status: int = 200,
) -> HttpResponse:
    leads = may(request.user, gold_set.project_id, Action.ACTIVATE)
    about = {
        "leads": leads,
        "runs": _rated_runs(request, gold_set.project_id) if leads else [],
        "held": _held(gold_set),
        "openings": openings_of(gold_set),
        "sees_full": form_of(gold_set.project_id) is Form.FULL,
    }
    try:
        bench, version, judges, families = _bench(gold_set, asked)
    except NoBench:
        gold = overview(gold_set)
        shown = {"gold_set": gold_set, "gold": gold, "judges": _judges(gold_set)}
        shown |= {"titles": titles_of(one.metric for one in gold.metrics)}
        return render(request, "review/calibration/workbench_none.html", about | shown)
    page = workbench_page(
        bench, version, judges=judges, families=families, asked=asked, leads=leads, entered=entered, tried=tried
    )
    expose_answers(request.user, [one.one.item.answer_id for one in page.shown], "workbench")
    return render(
        request,
        "review/calibration/workbench.html",
        about
        | {
            "page": page,
            "titles": titles_of(one.metric for one in page.gold.metrics),
            "opened": opened_lineage(gold_set.project_id, bench.family, person(request)),
        },
        status=status,
    )


def _held(gold_set: GoldSet) -> list[HeldOut]:
    """What looks saw of the hold-out, once the lineage is retired."""
    return hold_out_figures(gold_set) if is_retired(gold_set.project_id, gold_set.name) else []


def _act(action: Action) -> Callable[[Callable[..., HttpResponse | None]], Callable[..., HttpResponse]]:
    """A POST on a version at the bench, which goes back there. What is refused is said on the page."""

    def decorate(view: Callable[..., HttpResponse | None]) -> Callable[..., HttpResponse]:
        @signed_in_post
        @wraps(view)
        def done(request: HttpRequest, pk: int) -> HttpResponse:
            gold_set = access.fetch(GOLD_SETS, request.user, action, pk, path="project_id")
            try:
                bench, version, *_others = _bench(gold_set, request.POST)
            except NoBench as nothing:
                raise Http404 from nothing
            try:
                answered = view(request, bench, version)
            except Refused as refused:
                messages.error(request, explain_refusal(refused))
                answered = None
            return answered or _back(bench, version)

        return done

    return decorate


def _back(bench: Bench, version: RubricVersion) -> HttpResponse:
    at = f"judge={bench.judge.pk}&family={bench.family}&rubric={version.pk}"
    return redirect(f"{reverse('calibration', args=[bench.gold_set.pk])}?{at}")


@_act(Action.EVALUATE)
def calibration_draft(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Keep the text as a draft."""
    text, note = request.POST.get("text", ""), request.POST.get("note", "")
    project, errors = bench.gold_set.project, list[str]()
    try:
        rubric = parse_rubric(text)
        if (rubric.family, rubric.language) != (bench.family, bench.slot.language):
            raise Refused("rubric_other_family", family=bench.family, language=bench.slot.language)
        made = draft(project, rubric, by=person(request), note=note)
        return _back(bench, made)
    except InvalidFile as refused:
        errors = [explain(problem) for problem in refused.problems]
    except UnknownName as unknown:
        errors = [in_words(str(unknown))]
    except Refused as refused:
        errors = [explain_refusal(refused)]
    return _page(request, bench.gold_set, request.POST, entered=Entered(text, note, errors), status=400)


@_act(Action.EVALUATE)
def calibration_try(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Have the judge judge one open answer by the version; nothing is kept."""
    answer = whole_number(request.POST.get("answer", ""), 18) or 0
    results = try_on(bench, version, answer)
    question = next(one.answer.question.text for one in bench.items if one.answer_id == answer)
    return _page(request, bench.gold_set, request.POST, tried=tried_of(question, bench, dict(results)))


@_act(Action.EVALUATE)
def calibration_run(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Judge examples and validation by the version and the one in force."""
    runs = validate(bench, version, by=person(request))
    said = gettext("Examples and validation are being judged: %(runs)s.")
    messages.success(request, said % {"runs": ", ".join(f"#{run.pk}" for run in runs)})
    return None


@_act(Action.EVALUATE)
def calibration_offer(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Offer the draft for acceptance."""
    propose(version, bench.judge, by=person(request))
    messages.success(request, gettext("It is a candidate now. A lead may take a look."))
    return None


class SearchForm(forms.Form):
    """How a machine is to look for a better version, and what that may cost."""

    strategy = forms.ChoiceField(choices=Search.Strategy.choices)
    rounds = forms.IntegerField(min_value=1, max_value=MOST_ROUNDS, initial=3, required=False)
    budget = forms.DecimalField(max_digits=12, decimal_places=4, min_value=Decimal("0.0001"), required=False)


@_act(Action.EVALUATE)
def calibration_search(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Have a machine propose a version, or go on with a search that stands still."""
    form = SearchForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return None
    said = form.cleaned_data
    more = {"by": person(request), "rounds": said["rounds"] or 1, "budget": said["budget"]}
    search = open_search(bench.gold_set, bench.judge, bench.family, said["strategy"], **more)
    ask_for_search(search)
    messages.success(request, gettext("%(search)s is under way.") % {"search": search})
    return None


@_act(Action.ACTIVATE)
def calibration_check(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Judge the anchors of the version in force again."""
    proof = proof_of(bench.judge, version)
    if proof is None:
        raise Refused("anchors_not_proved", rubric=str(version))
    ask_for_check(proof, by=person(request))
    messages.success(request, gettext("The anchors are being judged again; the page says whether the judge moved."))
    return None


@_act(Action.ACTIVATE)
def calibration_look(request: HttpRequest, bench: Bench, version: RubricVersion) -> HttpResponse | None:
    """Take a look at the hold-out."""
    claim, beside = Claim.BETTER, None
    if (said := request.POST.get("claim", "")) == Claim.NOT_WORSE:
        claim = Claim.NOT_WORSE
    elif said.startswith("beside:"):
        claim, beside = Claim.NOT_WORSE, _chosen(_judges(bench.gold_set), said.removeprefix("beside:"))
    look = ask_for_look(bench.gold_set, bench.judge, version, by=person(request), claim=claim, beside=beside)
    messages.success(request, gettext("%(look)s is under way; it answers with one word.") % {"look": look})
    return None
