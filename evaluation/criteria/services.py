"""A criterion's life: drafted, named, tried, put in force and taken out again, and which are in force.

Every edit is a version of its own; content that was there before selects its version. What was judged by a criterion
stays as it is. A trial shows the prompt for an answer and a judge's word on a few of them; it writes no scores, and
what it cost stands in the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused, UnknownName
from evaluation.core.metric_specs import Kind
from evaluation.core.samples import Result
from evaluation.judges.clients import client_of
from evaluation.judges.prices import cost_of_all
from evaluation.judges.shipping import declared
from evaluation.judging.baseline import unanswerable
from evaluation.judging.calls import Case, JudgeCall, JudgeReply, Talk
from evaluation.judging.catalogue import family_for
from evaluation.judging.criteria.spec import CriterionSpec, criterion_rubric
from evaluation.judging.gates import applicability
from evaluation.judging.prompt import hear, judge_call
from evaluation.judging.rubric import FAMILY_PREFIX, Rubric, family_of_criterion, is_criterion
from evaluation.models import (
    Answer,
    AnswerSet,
    Criterion,
    CriterionEvent,
    CriterionVersion,
    JudgeVersion,
    MetricDefinition,
    Project,
    RubricVersion,
    User,
)
from evaluation.worker.shares import ENDPOINT_BUSY, Busy, SharedPool


def newest_events() -> QuerySet[CriterionEvent]:
    """The event that tells how each criterion stands."""
    return CriterionEvent.newest()


def active(project_id: int) -> QuerySet[CriterionEvent]:
    """The activations in force in a project, by name of the criterion."""
    return active_in([project_id])


def active_in(project_ids: Iterable[int]) -> QuerySet[CriterionEvent]:
    """The same of several projects."""
    events = newest_events().filter(criterion__project__in=list(project_ids), verb=CriterionEvent.Verb.ACTIVATED)
    return events.select_related("criterion", "version", "metric", "rubric_en", "rubric_ko").order_by("criterion__name")


def active_by_name(project_id: int, names: Iterable[str]) -> dict[str, CriterionEvent]:
    """The activations of the named criteria that are in force in the project."""
    return {event.criterion.name: event for event in active(project_id).filter(criterion__name__in=list(names))}


def idle_names(project_id: int, names: Iterable[str]) -> list[str]:
    """Those of the names that are criteria of the project and not in force."""
    named = Criterion.objects.filter(project_id=project_id, name__in=list(names))
    return sorted(set(named.values_list("name", flat=True)) - set(active_by_name(project_id, names)))


def standing(criterion: Criterion) -> CriterionEvent | None:
    """The newest event of a criterion; ``None`` while no version was ever activated."""
    return criterion.events.select_related("version").order_by("-seq").first()


def rubrics_of_others(project_ids: Iterable[int]) -> QuerySet[RubricVersion]:
    """Rubrics that other projects than these wrote or made of criteria: they are not everybody's."""
    own = list(project_ids)
    foreign = Criterion.objects.exclude(project_id__in=own).values_list("name", flat=True)
    of_criteria = Q(family__in=[FAMILY_PREFIX + name for name in foreign])
    return RubricVersion.objects.filter(of_criteria | Q(project__isnull=False) & ~Q(project__in=own))


def rubric_of(metric: MetricDefinition, language: str) -> RubricVersion | None:
    """The newest rubric of a criterion's metric in a language, else in the other one; ``None`` for other metrics."""
    if not is_criterion(metric.rubric_family):
        return None
    event = (
        CriterionEvent.objects.filter(metric=metric, verb=CriterionEvent.Verb.ACTIVATED)
        .select_related("rubric_en", "rubric_ko")
        .order_by("-seq")
        .first()
    )
    return event.rubric(language) if event else None


def draft(project: Project, spec: CriterionSpec, *, by: User | None) -> CriterionVersion:
    """The version with exactly this content, made as the next version where there is none.

    :raises Refused: ``criterion_name_taken`` where the name is a metric's of the product, of an import or of a
        criterion of another project.
    """
    with transaction.atomic():
        criterion = _criterion(project, spec.name, by)
        digest = content_hash(spec.content())
        versions = CriterionVersion.objects.filter(criterion=criterion)
        if same := versions.filter(content_hash=digest).first():
            return same
        newest = versions.order_by("-version").first()
        made = CriterionVersion.objects.create(
            criterion=criterion,
            version=newest.version + 1 if newest else 1,
            spec=spec.model_dump(mode="json"),
            content_hash=digest,
            created_by=by,
        )
        audit.record(by, "criterion.drafted", made, hash=digest, version=made.version)
    return made


def name_is_free(project: Project, name: str) -> bool:
    """Whether a criterion of the project may have, or has, the name. A metric's name is the only one on the site."""
    if name in declared() or Criterion.objects.filter(name=name).exclude(project=project).exists():
        return False
    return not MetricDefinition.objects.filter(name=name).exclude(kind=Kind.CUSTOM).exists()


def _criterion(project: Project, name: str, by: User | None) -> Criterion:
    if not name_is_free(project, name):
        raise Refused("criterion_name_taken", name=name)
    found = Criterion.objects.select_for_update().filter(project=project, name=name).first()
    return found or Criterion.objects.create(project=project, name=name, created_by=by)


def check_metric_names(project_id: int, names: Iterable[str]) -> None:
    """Every name is a metric's or a criterion's; a criterion need not be in force yet. One query.

    :raises UnknownName: for the first name that is neither.
    """
    criteria = Criterion.objects.filter(project_id=project_id).values_list("name", flat=True)
    known = [*declared(), *criteria]
    for name in names:
        if name not in known:
            raise UnknownName("metric", name, known)


@transaction.atomic
def activate(version: CriterionVersion, *, by: User | None) -> CriterionEvent:
    """Judge new runs by this version. Its rubrics are made once; the metric is the earlier one where neither scale nor
    direction nor anchors have changed, so that figures stay comparable.

    :raises Refused: ``criterion_active`` when it is in force already, ``criterion_name_taken`` when an import took the
        name meanwhile.
    """
    criterion = Criterion.objects.select_for_update().get(pk=version.criterion_id)
    now = standing(criterion)
    if now is not None and now.verb == CriterionEvent.Verb.ACTIVATED and now.version_id == version.pk:
        raise Refused("criterion_active", criterion=str(version))
    spec = version.read()
    metric = _metric(spec)
    rubrics = {language: _rubric(version, spec, language, metric, by) for language in spec.languages}
    written = {f"rubric_{language}": rubric for language, rubric in rubrics.items()}
    made = _next_event(criterion, version, CriterionEvent.Verb.ACTIVATED, by, metric=metric, **written)
    audit.record(by, "criterion.activated", version, hash=version.content_hash, metric=metric.version)
    return made


@transaction.atomic
def deactivate(criterion: Criterion, *, by: User | None) -> CriterionEvent:
    """Judge no new run by the criterion. Scores, ratings and runs that have it stay and go on.

    :raises Refused: ``criterion_not_active`` when no version is in force.
    """
    criterion = Criterion.objects.select_for_update().get(pk=criterion.pk)
    now = standing(criterion)
    if now is None or now.verb != CriterionEvent.Verb.ACTIVATED:
        raise Refused("criterion_not_active", names=criterion.name)
    made = _next_event(criterion, now.version, CriterionEvent.Verb.DEACTIVATED, by)
    audit.record(by, "criterion.deactivated", now.version, hash=now.version.content_hash)
    return made


def _next_event(
    criterion: Criterion, version: CriterionVersion, verb: str, by: User | None, **more: Any
) -> CriterionEvent:
    what = {"criterion": criterion, "version": version, "verb": verb, "created_by": by}
    return CriterionEvent.objects.create(seq=CriterionEvent.next_seq(criterion=criterion), **what, **more)


def _metric(spec: CriterionSpec) -> MetricDefinition:
    rows = MetricDefinition.objects.filter(name=spec.name)
    if rows.exclude(kind=Kind.CUSTOM).exists():
        raise Refused("criterion_name_taken", name=spec.name)
    if same := rows.filter(content_hash=spec.comparable_hash).first():
        return same
    newest = rows.order_by("-version").first()
    return MetricDefinition.objects.create(
        name=spec.name,
        version=newest.version + 1 if newest else 1,
        kind=Kind.CUSTOM,
        scale=str(spec.scale),
        direction=spec.direction,
        review_form=spec.review_form,
        rubric_family=family_of_criterion(spec.name),
        title={"en": spec.title_en, "ko": spec.title_ko},
        content_hash=spec.comparable_hash,
    )


def _rubric(
    version: CriterionVersion, spec: CriterionSpec, language: str, metric: MetricDefinition, by: User | None
) -> RubricVersion:
    rubric = criterion_rubric(spec, language, version=version.version, metric_version=metric.version)
    made, _ = RubricVersion.objects.get_or_create(
        family=rubric.family,
        language=language,
        version=version.version,
        defaults={
            "spec": rubric.model_dump(mode="json"),
            "content_hash": rubric.content_hash,
            "created_by": by,
        },
    )
    return made


TRIED = 5  # answers of a trial
_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What a judge made of some answers: each with what came of it. ``cost`` is in US dollars; ``None`` where a price
    or a count is unknown."""

    tried: tuple[tuple[Answer, Result], ...]
    cost: float | None


def draft_rubric(version: CriterionVersion, language: str) -> Rubric:
    """The rubric the version would become, in the language or else in the one it is written in."""
    spec = version.read()
    written = "ko" if language.startswith("ko") else "en"
    wanted = written if written in spec.languages else spec.languages[0]
    return criterion_rubric(spec, wanted, version=version.version, metric_version=1)


def sample_answers(version: CriterionVersion, answer_set: AnswerSet, count: int = TRIED) -> list[Answer]:
    """Up to ``count`` answers to questions of the criterion's categories, spread over the set."""
    answers = Answer.objects.filter(answer_set=answer_set, status="ok").select_related("question")
    categories = version.read().categories
    if categories:
        answers = answers.filter(question__category__in=categories)
    keys = list(answers.order_by("question__position", "sample", "id").values_list("pk", flat=True))
    chosen = [keys[i * len(keys) // count] for i in range(count)] if len(keys) > count else keys
    found = answers.prefetch_related("contexts").in_bulk(chosen)
    return [found[key] for key in chosen]


def preview(rubric: Rubric, answer: Answer, judge: JudgeVersion | None = None) -> JudgeCall | Result:
    """The request for an answer as a judge would get it; where there would be none, the result that stands instead."""
    family = family_for(rubric)
    question, said = answer.question.read(), answer.read()
    parts = applicability(family.given, question, said)
    left_out = dict(parts.not_applicable)
    if judge is not None and judge.is_baseline:
        left_out |= unanswerable(rubric, parts.metrics)
    if left_out:
        return next(iter(left_out.values()))
    ask = Talk(family.judge(Case(rubric, question, said, parts.specs))).ask
    if ask is None:
        raise ValueError("a criterion asks once")
    model, parameters = (judge.model, judge.parameters) if judge else ("", {})
    return judge_call(rubric, question, said, ask, model=model, parameters=parameters)


def try_out(version: CriterionVersion, judge: JudgeVersion, answers: Sequence[Answer], *, by: User | None) -> Trial:
    """Judge these answers once each, at the same time and without a second try. Those that could not be sent within a
    short while, because the endpoint rests or others use it up, fail as ``endpoint_busy``.

    :raises Refused: ``origin_not_allowed``, ``key_missing``, ``jury_asks_nobody``.
    """
    if judge.is_jury:
        raise Refused("jury_asks_nobody")
    rubric = draft_rubric(version, judge.language)
    asked = {answer.pk: preview(rubric, answer, judge) for answer in answers}
    calls = {pk: call for pk, call in asked.items() if isinstance(call, JudgeCall)}
    replies = _replies(judge, calls)
    results: dict[int, Result] = {pk: one for pk, one in asked.items() if isinstance(one, Result)}
    for pk, call in calls.items():
        sent = pk in replies
        results[pk] = _read(rubric, call, replies[pk], expects=judge.expects) if sent else Result.failed(ENDPOINT_BUSY)
    spent = cost_of_all(judge, list(replies.values()))
    cost = None if spent is None else float(spent)
    used = {
        name: None if None in counts else sum(counts)
        for name in ("tokens_in", "tokens_out")
        for counts in ([getattr(reply, name) for reply in replies.values()],)
    }
    audit.record(by, "criterion.tried", version, judge=judge.pk, calls=len(replies), **used, cost=cost)
    return Trial(tuple((answer, results[answer.pk]) for answer in answers), cost)


def _replies(judge: JudgeVersion, calls: dict[int, JudgeCall]) -> dict[int, JudgeReply]:
    """The replies that came within what all workers share of the endpoint; who waits for a page is not kept long."""
    replies: dict[int, JudgeReply] = {}
    if not calls:
        return replies
    with SharedPool(client_of(judge), judge.endpoint, TRIED, project_id=judge.project_id) as pool:
        pool.submit(calls.items())
        while pool.in_hands:
            try:
                replies |= {int(str(pk)): reply for pk, reply in pool.collect(_WAIT_SECONDS)}
            except Busy:
                pool.withdraw()
    return replies


def _read(rubric: Rubric, call: JudgeCall, reply: JudgeReply, *, expects: bool) -> Result:
    family = family_for(rubric)
    talk = Talk(family.judge(Case(rubric, call.question, call.answer, family.given, expects=expects)))
    talk.hear(hear(reply, call.ask))
    (result,) = talk.results.values()
    return result
