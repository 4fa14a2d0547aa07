"""Draft, try out, activate and deactivate criteria, and list the active ones.

Every edit creates a version; equal content selects the existing one. Existing scores keep their version. A trial shows
the prompt for an answer and a judge's verdicts on a few answers. It stores no scores; the audit log records its cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.metric_specs import MetricKind
from evaluation.core.samples import Result
from evaluation.judges.clients import client_of
from evaluation.judges.prices import total_cost
from evaluation.judging.baseline import unsupported_metrics
from evaluation.judging.calls import JudgeCall, JudgeCase, JudgeDialog, JudgeReply
from evaluation.judging.catalogue import family_for
from evaluation.judging.criteria.spec import CriterionSpec, criterion_rubric
from evaluation.judging.prechecks import applicability
from evaluation.judging.prompt import judge_call, parse_reply
from evaluation.judging.rubric import FAMILY_PREFIX, Rubric, criterion_family, is_criterion
from evaluation.metric_packages.declared import declared_metrics
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
from evaluation.worker.endpoint_quota import ENDPOINT_BUSY, EndpointBusy, SharedPool


def newest_events() -> QuerySet[CriterionEvent]:
    """Newest event of each criterion."""
    return CriterionEvent.newest()


def active_criteria(project_id: int) -> QuerySet[CriterionEvent]:
    """Activation events of a project's active criteria, ordered by criterion name."""
    return active_criteria_in([project_id])


def active_criteria_in(project_ids: Iterable[int]) -> QuerySet[CriterionEvent]:
    """Activation events of the active criteria of several projects, ordered by criterion name."""
    events = newest_events().filter(criterion__project__in=list(project_ids), verb=CriterionEvent.Verb.ACTIVATED)
    return events.select_related("criterion", "version", "metric", "rubric_en", "rubric_ko").order_by("criterion__name")


def active_by_name(project_id: int, names: Iterable[str]) -> dict[str, CriterionEvent]:
    return {
        event.criterion.name: event for event in active_criteria(project_id).filter(criterion__name__in=list(names))
    }


def inactive_names(project_id: int, names: Iterable[str]) -> list[str]:
    """Names that are criteria of the project but not active."""
    criteria = Criterion.objects.filter(project_id=project_id, name__in=list(names))
    return sorted(set(criteria.values_list("name", flat=True)) - set(active_by_name(project_id, names)))


def newest_event(criterion: Criterion) -> CriterionEvent | None:
    """Newest event of a criterion; ``None`` if no version was ever activated."""
    return criterion.events.select_related("version").order_by("-seq").first()


def foreign_rubrics(project_ids: Iterable[int]) -> QuerySet[RubricVersion]:
    """Rubrics written by projects other than these, or created from the criteria of such projects."""
    own_ids = list(project_ids)
    foreign_names = Criterion.objects.exclude(project_id__in=own_ids).values_list("name", flat=True)
    from_foreign_criteria = Q(family__in=[FAMILY_PREFIX + name for name in foreign_names])
    return RubricVersion.objects.filter(from_foreign_criteria | Q(project__isnull=False) & ~Q(project__in=own_ids))


def rubric_for_metric(metric: MetricDefinition, language: str) -> RubricVersion | None:
    """Newest rubric of a criterion's metric in this language, else in the other one; ``None`` if the metric is not a
    criterion's."""
    if not is_criterion(metric.rubric_family):
        return None
    event = (
        CriterionEvent.objects.filter(metric=metric, verb=CriterionEvent.Verb.ACTIVATED)
        .select_related("rubric_en", "rubric_ko")
        .order_by("-seq")
        .first()
    )
    return event.rubric(language) if event else None


def draft_version(project: Project, spec: CriterionSpec, *, by: User | None) -> CriterionVersion:
    """Version with exactly this content; a new version is created if there is none.

    :raises DomainError: ``criterion_name_taken`` if a built-in or imported metric, or another project's criterion, has
    the name."""
    with transaction.atomic():
        criterion = _get_or_create_criterion(project, spec.name, by)
        digest = content_hash(spec.content())
        versions = CriterionVersion.objects.filter(criterion=criterion)
        if existing := versions.filter(content_hash=digest).first():
            return existing
        newest = versions.order_by("-version").first()
        version = CriterionVersion.objects.create(
            criterion=criterion,
            version=newest.version + 1 if newest else 1,
            spec=spec.model_dump(mode="json"),
            content_hash=digest,
            created_by=by,
        )
        audit.record(by, "criterion.drafted", version, hash=digest, version=version.version)
    return version


def is_name_free(project: Project, name: str) -> bool:
    """Return whether a criterion of the project may use the name. Metric names are unique on the site."""
    if name in declared_metrics() or Criterion.objects.filter(name=name).exclude(project=project).exists():
        return False
    return not MetricDefinition.objects.filter(name=name).exclude(kind=MetricKind.CUSTOM).exists()


def _get_or_create_criterion(project: Project, name: str, by: User | None) -> Criterion:
    if not is_name_free(project, name):
        raise DomainError("criterion_name_taken", name=name)
    criterion = Criterion.objects.select_for_update().filter(project=project, name=name).first()
    return criterion or Criterion.objects.create(project=project, name=name, created_by=by)


def check_metric_names(project_id: int, names: Iterable[str]) -> None:
    """Check that every name is a metric or a criterion, active or not. One query.

    :raises UnknownName: for the first unknown name."""
    criteria = Criterion.objects.filter(project_id=project_id).values_list("name", flat=True)
    known_names = [*declared_metrics(), *criteria]
    for name in names:
        if name not in known_names:
            raise UnknownName("metric", name, known_names)


@transaction.atomic
def activate(version: CriterionVersion, *, by: User | None) -> CriterionEvent:
    """Use this version in new runs. Rubrics are created once. The metric is reused if scale, direction and anchors are
    unchanged, so that scores remain comparable.

    :raises DomainError: ``criterion_active`` if it is active already, ``criterion_name_taken`` if an import has taken
    the name in the meantime."""
    criterion = Criterion.objects.select_for_update().get(pk=version.criterion_id)
    current = newest_event(criterion)
    if current is not None and current.verb == CriterionEvent.Verb.ACTIVATED and current.version_id == version.pk:
        raise DomainError("criterion_active", criterion=str(version))
    spec = version.read()
    metric = _get_or_create_metric(spec)
    rubrics = {language: _get_or_create_rubric(version, spec, language, metric, by) for language in spec.languages}
    rubric_columns = {f"rubric_{language}": rubric for language, rubric in rubrics.items()}
    event = _insert_event(criterion, version, CriterionEvent.Verb.ACTIVATED, by, metric=metric, **rubric_columns)
    audit.record(by, "criterion.activated", version, hash=version.content_hash, metric=metric.version)
    return event


@transaction.atomic
def deactivate(criterion: Criterion, *, by: User | None) -> CriterionEvent:
    """Stop using the criterion in new runs. Existing scores, ratings and runs are unaffected.

    :raises DomainError: ``criterion_not_active`` if no version is active."""
    criterion = Criterion.objects.select_for_update().get(pk=criterion.pk)
    current = newest_event(criterion)
    if current is None or current.verb != CriterionEvent.Verb.ACTIVATED:
        raise DomainError("criterion_not_active", names=criterion.name)
    event = _insert_event(criterion, current.version, CriterionEvent.Verb.DEACTIVATED, by)
    audit.record(by, "criterion.deactivated", current.version, hash=current.version.content_hash)
    return event


def _insert_event(
    criterion: Criterion, version: CriterionVersion, verb: str, by: User | None, **columns: Any
) -> CriterionEvent:
    base_columns = {"criterion": criterion, "version": version, "verb": verb, "created_by": by}
    return CriterionEvent.objects.create(seq=CriterionEvent.next_seq(criterion=criterion), **base_columns, **columns)


def _get_or_create_metric(spec: CriterionSpec) -> MetricDefinition:
    rows = MetricDefinition.objects.filter(name=spec.name)
    if rows.exclude(kind=MetricKind.CUSTOM).exists():
        raise DomainError("criterion_name_taken", name=spec.name)
    if existing := rows.filter(content_hash=spec.comparability_hash).first():
        return existing
    newest = rows.order_by("-version").first()
    return MetricDefinition.objects.create(
        name=spec.name,
        version=newest.version + 1 if newest else 1,
        kind=MetricKind.CUSTOM,
        scale=str(spec.scale),
        direction=spec.direction,
        review_form=spec.review_form,
        rubric_family=criterion_family(spec.name),
        title={"en": spec.title_en, "ko": spec.title_ko},
        content_hash=spec.comparability_hash,
    )


def _get_or_create_rubric(
    version: CriterionVersion, spec: CriterionSpec, language: str, metric: MetricDefinition, by: User | None
) -> RubricVersion:
    rubric = criterion_rubric(spec, language, version=version.version, metric_version=metric.version)
    row, _ = RubricVersion.objects.get_or_create(
        family=rubric.family,
        language=language,
        version=version.version,
        defaults={
            "spec": rubric.model_dump(mode="json"),
            "content_hash": rubric.content_hash,
            "created_by": by,
        },
    )
    return row


# Answers of a trial.
TRIAL_ANSWER_COUNT = 5
_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """Results of a judge on some answers. ``cost`` is in US dollars; ``None`` if a price or a count is unknown."""

    results: tuple[tuple[Answer, Result], ...]
    cost: float | None


def draft_rubric(version: CriterionVersion, language: str) -> Rubric:
    """Rubric that activation of the version would create, in the language, or in the version's first language if it
    lacks that one."""
    spec = version.read()
    requested = "ko" if language.startswith("ko") else "en"
    rubric_language = requested if requested in spec.languages else spec.languages[0]
    return criterion_rubric(spec, rubric_language, version=version.version, metric_version=1)


def sample_answers(version: CriterionVersion, answer_set: AnswerSet, count: int = TRIAL_ANSWER_COUNT) -> list[Answer]:
    """Up to ``count`` answers to questions of the criterion's categories, evenly spread over the set."""
    answers = Answer.objects.filter(answer_set=answer_set, status="ok").select_related("question")
    categories = version.read().categories
    if categories:
        answers = answers.filter(question__category__in=categories)
    keys = list(answers.order_by("question__position", "sample", "id").values_list("pk", flat=True))
    sample_keys = [keys[i * len(keys) // count] for i in range(count)] if len(keys) > count else keys
    answers_by_pk = answers.prefetch_related("contexts").in_bulk(sample_keys)
    return [answers_by_pk[key] for key in sample_keys]


def preview_call(rubric: Rubric, answer: Answer, judge: JudgeVersion | None = None) -> JudgeCall | Result:
    """Request that a judge would get for an answer, or the result if no call would be made."""
    family = family_for(rubric)
    question, answer_spec = answer.question.read(), answer.read()
    applicable = applicability(family.produced_metrics, question, answer_spec)
    results_without_call = dict(applicable.not_applicable)
    if judge is not None and judge.is_baseline:
        results_without_call |= unsupported_metrics(rubric, applicable.metrics)
    if results_without_call:
        return next(iter(results_without_call.values()))
    request = JudgeDialog(family.judge(JudgeCase(rubric, question, answer_spec, applicable.specs))).request
    if request is None:
        raise ValueError("a criterion asks once")
    model, parameters = (judge.model, judge.parameters) if judge else ("", {})
    return judge_call(rubric, question, answer_spec, request, model=model, parameters=parameters)


def try_out(version: CriterionVersion, judge: JudgeVersion, answers: Sequence[Answer], *, by: User | None) -> Trial:
    """Judge each answer once, concurrently and without retries. Answers that the endpoint's quota delays too long fail
    as ``endpoint_busy``.

    :raises DomainError: ``origin_not_allowed``, ``key_missing``, ``jury_asks_nobody``."""
    if judge.is_jury:
        raise DomainError("jury_asks_nobody")
    rubric = draft_rubric(version, judge.language)
    previews = {answer.pk: preview_call(rubric, answer, judge) for answer in answers}
    calls = {pk: call for pk, call in previews.items() if isinstance(call, JudgeCall)}
    replies = _collect_replies(judge, calls)
    results: dict[int, Result] = {
        pk: preview_result for pk, preview_result in previews.items() if isinstance(preview_result, Result)
    }
    for pk, call in calls.items():
        has_reply = pk in replies
        results[pk] = (
            _read_result(rubric, call, replies[pk], expects=judge.expects)
            if has_reply
            else Result.failed(ENDPOINT_BUSY)
        )
    total = total_cost(judge, list(replies.values()))
    cost = None if total is None else float(total)
    token_counts = {
        name: None if None in counts else sum(counts)
        for name in ("tokens_in", "tokens_out")
        for counts in ([getattr(reply, name) for reply in replies.values()],)
    }
    audit.record(by, "criterion.tried", version, judge=judge.pk, calls=len(replies), **token_counts, cost=cost)
    return Trial(tuple((answer, results[answer.pk]) for answer in answers), cost)


def _collect_replies(judge: JudgeVersion, calls: dict[int, JudgeCall]) -> dict[int, JudgeReply]:
    """Replies within the endpoint's shared quota. Calls that must wait are withdrawn, because a page waits for the
    replies."""
    replies: dict[int, JudgeReply] = {}
    if not calls:
        return replies
    with SharedPool(client_of(judge), judge.endpoint, TRIAL_ANSWER_COUNT, project_id=judge.project_id) as pool:
        pool.submit(calls.items())
        while pool.outstanding:
            try:
                replies |= {int(str(pk)): reply for pk, reply in pool.collect(_WAIT_SECONDS)}
            except EndpointBusy:
                pool.withdraw()
    return replies


def _read_result(rubric: Rubric, call: JudgeCall, reply: JudgeReply, *, expects: bool) -> Result:
    family = family_for(rubric)
    dialog = JudgeDialog(
        family.judge(JudgeCase(rubric, call.question, call.answer, family.produced_metrics, expects=expects))
    )
    dialog.advance(parse_reply(reply, call.judge_request))
    (result,) = dialog.results.values()
    return result
