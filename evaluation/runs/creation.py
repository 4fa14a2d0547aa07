"""Creating, starting, pausing, resuming and cancelling runs, for pages, commands and REST."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from functools import partial

from django.db import transaction
from pydantic import ConfigDict

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.connectors.protocol import FULL_RAG
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.metric_specs import Direction, MetricKind
from evaluation.criteria.rubrics import assign_rubrics
from evaluation.criteria.services import active_by_name, active_criteria, inactive_names
from evaluation.extensions import require
from evaluation.judges.embeddings import choose_embedding, choose_token_model
from evaluation.judges.shipped import judge_panel, profile_row
from evaluation.judging.catalogue import family_named, judge_metric, judge_metrics
from evaluation.judging.embedding.similarity import BERT_SCORE, EMBEDDING_NAMES
from evaluation.judging.families import asked_back
from evaluation.metric_packages.declared import declared_metrics
from evaluation.metric_packages.loading import stamps
from evaluation.metrics.catalogue import own_rule_metrics, rule_metrics
from evaluation.metrics.normalise import analysis
from evaluation.models import (
    AnswerSet,
    CriterionEvent,
    JudgeVersion,
    MetricDefinition,
    ProfileVersion,
    Project,
    QuestionSet,
    RubricVersion,
    Run,
    SystemVersion,
    User,
    VersionStatus,
)
from evaluation.models.run_spec import DEFAULT_SPEC, AskSpec, CallSpec, RunSpec
from evaluation.profiles.spec import ProfileSpec, metrics_by_report_name
from evaluation.runs.budgets import check_budget, set_budget
from evaluation.runs.selectors import selected_questions
from evaluation.worker.lifecycle import RunConfig, cancel, make_run, pause, resume, start


def _active_criteria(project_id: int, spec: ProfileSpec, names: Collection[str]) -> list[CriterionEvent]:
    """The active versions of the custom criteria among the names.

    :raises DomainError: ``criterion_not_active`` if one is not active; ``criterion_not_weighable`` if the profile
        weights a criterion or an own metric for which higher is not better, such as classes."""
    if idle := inactive_names(project_id, names):
        raise DomainError("criterion_not_active", names=idle)
    events = active_by_name(project_id, names)
    weighted = {name for part in spec.parts for name in (part.metric, part.otherwise)}
    weighted |= {spec.whole_score.metric} if spec.whole_score else set()
    directions = {name: event.version.read().direction for name, event in events.items()}
    directions |= {name: declared_metrics()[name].direction for name in stamps(weighted)}
    if unweighable := sorted(name for name in weighted if directions.get(name, Direction.HIGHER) != Direction.HIGHER):
        raise DomainError("criterion_not_weighable", names=unweighable)
    return [events[name] for name in names if name in events]


def prepare_run(
    answer_set: AnswerSet,
    profile: ProfileVersion,
    spec: RunSpec = DEFAULT_SPEC,
    *,
    judge: JudgeVersion | None,
    secondary: Sequence[JudgeVersion] = (),
    by: User | None = None,
) -> Run:
    """Create a draft run of the profile's rule metrics and, with a judge, of its judge metrics; one unit per rubric
    family. Rule metrics that a family decides are left to the judge.

    ``judge`` is the judge whose values count; ``secondary`` judges are jury members or only compared. They and the
    profile are those that ``spec`` names. Answers without text have no judge. Without ``embeddings``,
    :func:`chosen_embedding` picks the endpoint.

    :raises DomainError: see :func:`_active_criteria`, :func:`check_budget` and :func:`selected_questions`;
    ``no_batches``,
        ``feature_off``; ``rubric_not_used`` by the run's metrics, ``rubrics_of_jury``, ``rubric_needs_answers``.
    :raises UnknownName: for an unknown metric or rubric version."""
    profile_spec = ProfileSpec.model_validate(profile.spec)
    rules, judge_names = {m.spec.name for m in rule_metrics()}, {s.name for s in judge_metrics()}
    names, criteria = _resolve_metrics(profile, profile_spec, spec.metrics, [*rules, *judge_names, *EMBEDDING_NAMES])
    judge = judge if (generated := answer_set.evaluation_type == FULL_RAG) else None
    families = sorted({judge_metric(name).rubric_family for name in names if judge and name in judge_names})
    decided_by_families = {metric.spec.name for family in families for metric in family_named(family).decided_rules}
    embeddings = tuple(name for name in names if name in EMBEDDING_NAMES) if generated else ()
    own_rules = set(own_rule_metrics())
    config = RunConfig(
        **AskSpec.model_validate(answer_set, from_attributes=True).model_dump(),
        **spec.model_dump(include=set(CallSpec.model_fields)),
        rules=tuple(name for name in names if name in rules - own_rules - decided_by_families),
        own_rules=tuple(name for name in names if name in own_rules),
        embeddings=embeddings,
        embedding=choose_embedding(judge, spec.embeddings) if embeddings or asked_back.NAME in families else None,
        tokens=choose_token_model() if BERT_SCORE.name in embeddings else None,
        question_ids=selected_questions(answer_set.question_set, spec),
        analysis=analysis(),
    )
    _check_batches(spec.batch, [version for version in (judge, *secondary) if version])
    judges, statuses = _assign_judges(
        (judge, *secondary) if judge else (), families, spec.rubrics, criteria, spec.language
    )
    check_budget(spec.budget, [version for version, _, _ in judges], config)
    make_draft = partial(
        make_run, answer_set, profile, config, judges=judges, statuses=statuses, start_token=spec.start_token
    )
    return make_draft(name=spec.name, by=by, budget=spec.budget)


def _assign_judges(
    versions: Sequence[JudgeVersion],
    families: Sequence[str],
    rubrics: Sequence[str],
    criteria: Sequence[CriterionEvent],
    language: str,
) -> tuple[list[tuple[JudgeVersion, RubricVersion, bool]], dict[tuple[int, int], VersionStatus]]:
    """Each judge with its rubrics and whether it is primary, and the status of each rubric.

    :raises DomainError: see :func:`prepare_run`."""
    _check_rubrics(rubrics, families, versions[0] if versions else None)
    judges: list[tuple[JudgeVersion, RubricVersion, bool]] = []
    statuses: dict[tuple[int, int], VersionStatus] = {}
    for index, version in enumerate(versions):
        for assignments in assign_rubrics(version, families, rubrics, language):
            judges += [
                (version, assignment.rubric, index == 0 and assignment is assignments[0]) for assignment in assignments
            ]
            statuses |= {(version.pk, assignment.rubric.pk): assignment.status for assignment in assignments}
        judges += [(version, event.rubric(language or version.language), index == 0) for event in criteria]
    return judges, statuses


def _check_rubrics(rubrics: Sequence[str], families: Sequence[str], judge: JudgeVersion | None) -> None:
    requested = [name.rpartition("@")[0] for name in dict.fromkeys(rubrics)]
    if unused := sorted(set(requested) - set(families)):
        raise DomainError("rubric_not_used", families=unused)
    if requested and judge and judge.is_baseline:
        raise DomainError("rubric_of_baseline")
    if judge and judge.is_jury and len(set(requested)) < len(requested):
        raise DomainError("rubrics_of_jury")


def _resolve_metrics(
    profile: ProfileVersion, spec: ProfileSpec, extra: Collection[str], computed: Collection[str]
) -> tuple[Collection[str], list[CriterionEvent]]:
    """The metrics to compute (the profile's and the requested ones, by their report names too), and the custom criteria
    among them.

    :raises UnknownName: for a metric that nothing computes.
    :raises DomainError: see :func:`_active_criteria` and :func:`_check_installed`."""
    by_report_name = metrics_by_report_name(profile.spec)
    requested = [name if name in computed else by_report_name.get(name, name) for name in extra]
    names = dict.fromkeys([*spec.metrics, *requested])
    criteria = _active_criteria(profile.project_id, spec, names)
    _check_installed(name for name in spec.metrics if name not in computed)
    known_names = [*computed, *(event.criterion.name for event in active_criteria(profile.project_id))]
    for name in requested:
        if name not in known_names:
            raise UnknownName("metric", name, known_names)
    return names, criteria


def _check_installed(names: Iterable[str]) -> None:
    """Check that no name is an own metric whose package was uninstalled. No query without names.

    :raises DomainError: ``metric_not_installed``."""
    undeclared = set(names) - declared_metrics().keys()
    code_kinds = [MetricKind.RULE, MetricKind.JUDGE]
    rows = MetricDefinition.objects.filter(name__in=undeclared, kind__in=code_kinds) if undeclared else ()
    if missing := sorted({row.name for row in rows}):
        raise DomainError("metric_not_installed", names=", ".join(missing))


def _check_batches(batch: bool, judges: Sequence[JudgeVersion]) -> None:
    if not batch:
        return
    require("batches")
    if not any(judge.endpoint and judge.endpoint.batches for judge in judges):
        raise DomainError("no_batches")


class CollectionRequest(AskSpec):
    """Answers to collect: the system and the questions."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    question_set: QuestionSet
    version: SystemVersion

    @property
    def project(self) -> Project:
        return self.question_set.project

    def create_answer_set(self, by: User | None) -> AnswerSet:
        """Create the empty answer set that its first run fills."""
        answer_set = AnswerSet.objects.create(
            project_id=self.question_set.project_id,
            question_set=self.question_set,
            system_version=self.version,
            k=self.k,
            evaluation_type=self.evaluation_type,
            source=self.version.adapter,
            created_by=by,
        )
        audit.record(by, "answer_set.asked", answer_set)
        return answer_set


def draft_run(source: AnswerSet | CollectionRequest, spec: RunSpec, by: User | None) -> Run:
    """Create a run without starting it. Call inside a transaction.

    :raises UnknownName: for an unknown profile, judge, metric or embedding endpoint.
    :raises DomainError: see :func:`prepare_run`; ``judge_needed``."""
    project = source.project
    panel = None
    if spec.judge is not None:
        panel = judge_panel(project, [spec.judge, *spec.beside], spec.jury, baseline=spec.baseline)
    return prepare_run(
        source.create_answer_set(by) if isinstance(source, CollectionRequest) else source,
        profile_row(project, spec.profile),
        spec,
        judge=panel.primary if panel else None,
        secondary=panel.secondary if panel else (),
        by=by,
    )


def equal_rules_run(draft: Run) -> Run | None:
    """The newest run that has computed what a draft without judges would compute, or still does."""
    if draft.judges.exists():
        return None
    runs = Run.objects.filter(answer_set=draft.answer_set_id, profile_version=draft.profile_version_id, judges=None)
    runs = runs.filter(config_hash=draft.config_hash, config__analysis=draft.config["analysis"])
    return runs.filter(state__in=[Run.State.RUNNING, *Run.ENDED]).order_by("-pk").first()


def launch_run(source: AnswerSet | CollectionRequest, spec: RunSpec, by: User | None) -> Run:
    """Create and start a run, or return the run that an equal request with the start token already created.

    :raises UnknownName: see :func:`draft_run`.
    :raises DomainError: see :func:`draft_run`; ``start_token_used`` by another request."""
    with transaction.atomic():
        lock_project(source.project.pk)
        token, request_hash = spec.start_token, _request_hash(source, spec)
        run = Run.objects.select_related("answer_set").filter(start_token=token).first() if token else None
        if run is None:
            run = draft_run(source, spec, by)
            Run.objects.filter(pk=run.pk).update(request_hash=request_hash)
            start(run, by)
        elif run.request_hash != request_hash:
            raise DomainError("start_token_used")
    return run


def _request_hash(source: AnswerSet | CollectionRequest, spec: RunSpec) -> str:
    options = spec.model_dump(mode="json", exclude={"start_token"})
    if isinstance(source, AnswerSet):
        return content_hash([source.pk, options])
    collection = source.model_dump(mode="json", include=set(AskSpec.model_fields))
    return content_hash([source.question_set.pk, source.version.pk, collection, options])


def pause_run(run: Run, by: User | None) -> Run:
    """Pause a running run; a paused one stays paused.

    :raises DomainError: ``run_not_running``."""
    return _ensure_state(run, pause(run, by), [Run.State.PAUSED], "run_not_running")


def resume_run(run: Run, by: User | None, budget: Decimal | None = None) -> Run:
    """Resume a paused run, with a new budget if one is given; a running one keeps running.

    :raises DomainError: ``run_not_paused``; see :func:`set_budget`."""
    if run.state == Run.State.PAUSED:
        set_budget(run, budget, by)
    return _ensure_state(run, resume(run, by), [Run.State.RUNNING, Run.State.PREFLIGHT], "run_not_paused")


def cancel_run(run: Run, by: User | None) -> Run:
    """Cancel a run for good; a cancelled one stays cancelled.

    :raises DomainError: ``run_ended``."""
    return _ensure_state(run, cancel(run, by), [Run.State.CANCELLED], "run_ended")


def _ensure_state(run: Run, changed: bool, target_states: Sequence[str], code: str) -> Run:
    if not changed and run.state not in target_states:
        raise DomainError(code, state=run.get_state_display())
    return run
