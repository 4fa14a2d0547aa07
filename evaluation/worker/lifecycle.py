"""The life cycle of a run: creation, start, pause, resume, cancellation, retry, completion.

    draft -> preflight -> running <-> paused -> cancelled
                             |
                             +-> completed | incomplete -> (retry_failed) -> running

The preflight is for judges behind an endpoint; it can be paused too, and is skipped without such judges. Every step is
one conditional update, so that two people pressing the same button act once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from pydantic import Field

from evaluation.accounts import audit
from evaluation.connectors.protocol import RECORDED
from evaluation.core.canonical import content_hash, text_hash
from evaluation.core.errors import DomainError
from evaluation.extensions import batch_hooks
from evaluation.judging.embedding.similarity import EmbeddingChoice, TokenChoice
from evaluation.judging.families import asked_back
from evaluation.metric_packages.loading import stamps
from evaluation.models import (
    Answer,
    AnswerSet,
    Endpoint,
    JudgeVersion,
    Preflight,
    ProfileVersion,
    Question,
    RubricVersion,
    Run,
    RunEvent,
    RunJudge,
    SealedAnswer,
    System,
    User,
    VersionStatus,
    WorkUnit,
)
from evaluation.models.run_spec import AskSpec, CallSpec
from evaluation.models.runs import UNAPPROVED
from evaluation.worker import dispatch
from evaluation.worker.units import UNIT_BATCH, State, insert_units


class RunConfig(AskSpec, CallSpec):
    """The configuration of a run. Empty ``question_ids`` mean all questions of the set. ``embeddings`` are its metrics
    that need embeddings and no judge, computed with ``embedding`` and ``tokens`` if set. ``analysis`` is the Korean
    analyzer at creation; older runs have none. ``own_rules`` are its own rule metrics; ``packages`` are the
    stamps of the packages of all own metrics, by metric, which :func:`make_run` adds."""

    rules: tuple[str, ...] = ()
    own_rules: tuple[str, ...] = ()
    packages: dict[str, str] = Field(default_factory=dict)
    embeddings: tuple[str, ...] = ()
    embedding: EmbeddingChoice | None = None
    tokens: TokenChoice | None = None
    question_ids: tuple[str, ...] = ()
    analysis: str = ""

    @cached_property
    def hash(self) -> str:
        """Hash of the configuration, part of the key of every unit of the run. Batching and the installed analyzer are
        not part of it. Cached, because it may cover the ids of all questions."""
        return content_hash(self.model_dump(mode="json", exclude={"batch", "analysis"}))


def run_answers(run: Run) -> QuerySet[Answer]:
    """The newest answer to each question and sample of the run."""
    newer = Answer.objects.filter(
        answer_set_id=OuterRef("answer_set_id"),
        question_id=OuterRef("question_id"),
        sample=OuterRef("sample"),
        round__gt=OuterRef("round"),
    )
    answers = Answer.objects.filter(~Exists(newer), answer_set_id=run.answer_set_id).select_related("question")
    question_ids = RunConfig.model_validate(run.config).question_ids
    return answers.filter(question__external_id__in=question_ids) if question_ids else answers


def collects_answers(run: Run) -> bool:
    """Return whether the run has to collect answers first: its answer set was created empty and no run has completed it
    yet."""
    answers = run.answer_set
    return answers.content_hash is None and answers.system_version.adapter != RECORDED


def questions_to_collect(run: Run) -> QuerySet[Question]:
    """The questions that the run asks the system, in order; none if it does not collect answers."""
    if not collects_answers(run):
        return Question.objects.none()
    questions = Question.objects.filter(question_set_id=run.answer_set.question_set_id).order_by("position")
    question_ids = RunConfig.model_validate(run.config).question_ids
    return questions.filter(external_id__in=question_ids) if question_ids else questions


def collection_units(run: Run) -> Iterator[WorkUnit]:
    """One unit per question to ask; none if the run does not collect answers."""
    config, version = RunConfig.model_validate(run.config), run.answer_set.system_version
    for question in questions_to_collect(run):
        key_parts = [question.external_id, DEFAULT_SAMPLE, config.k, config.evaluation_type, version.content_hash]
        yield WorkUnit(
            run=run,
            kind=WorkUnit.Kind.ASK,
            question=question,
            sample=DEFAULT_SAMPLE,
            key=content_hash([WorkUnit.Kind.ASK, *key_parts]),
        )


@dataclass(frozen=True, slots=True)
class UnitStep:
    """A step for one answer: rules, an own metric, embeddings, or one judgement by a judge."""

    kind: str
    judge: RunJudge | None = None
    repeat: int = 1
    metric: str = ""


def unit_steps(config: RunConfig, judges: Iterable[RunJudge]) -> Iterator[UnitStep]:
    """The steps for each answer that these judges may judge."""
    if config.rules:
        yield UnitStep(WorkUnit.Kind.RULES)
    yield from (UnitStep(WorkUnit.Kind.OWN, metric=name) for name in config.own_rules)
    if config.embeddings:
        yield UnitStep(WorkUnit.Kind.EMBED)
    for judge in judges:
        if not judge.judge_version.is_jury:
            yield from (UnitStep(WorkUnit.Kind.JUDGE, judge, repeat) for repeat in range(1, judge.repeat_count + 1))


@dataclass(frozen=True, slots=True)
class RunJudges:
    """A run's judges. Judges with an unproven rubric (draft or candidate) never see sealed answers."""

    judges: Sequence[RunJudge]
    sealed: frozenset[tuple[str, str]]

    @property
    def approved(self) -> list[RunJudge]:
        """The judges that may judge sealed answers."""
        return [judge for judge in self.judges if judge.standing not in UNAPPROVED]

    def may_judge(self, answer: Answer) -> Sequence[RunJudge]:
        """The judges that may judge the answer."""
        return self.approved if self.sealed and seal_key(answer) in self.sealed else self.judges


def run_judges(run: Run) -> RunJudges:
    """The run's judges, and the sealed answers of its project if one of the judges is unproven."""
    judges = list(run.judges.select_related("judge_version", "rubric_version"))
    unproven = any(judge.standing in UNAPPROVED for judge in judges)
    return RunJudges(judges, sealed_answers(run.project_id) if unproven else frozenset())


def planned_units(run: Run, collecting: Iterable[WorkUnit] = ()) -> Iterator[WorkUnit]:
    """One rules unit, one embedding unit and a unit for each own metric per answer, and one judge unit per answer,
    judge and repeat. Units of answers still to be collected wait for their question's unit in ``collecting``."""
    config, judges_of_run = RunConfig.model_validate(run.config), run_judges(run)
    answers = run_answers(run).order_by("question__position", "sample")
    # Texts are only needed to find sealed answers.
    if not judges_of_run.sealed:
        answers = answers.only("sample", "question__external_id")
    ids = list(answers.values_list("pk", flat=True))
    # A page at a time, because SQLite refuses writes during a read of rows that changed since.
    for first in range(0, len(ids), UNIT_BATCH):
        for answer in answers.filter(pk__in=ids[first : first + UNIT_BATCH]):
            template_unit = WorkUnit(question=answer.question, sample=answer.sample, answer=answer)
            yield from (
                _build_unit(run, config, step, template_unit)
                for step in unit_steps(config, judges_of_run.may_judge(answer))
            )
    for unit in collecting:
        for step in unit_steps(config, judges_of_run.judges):
            waiting = _build_unit(run, config, step, unit)
            waiting.needs, waiting.state = unit, State.BLOCKED
            yield waiting


def seal_key(answer: Answer) -> tuple[str, str]:
    """The key of a sealed answer: the hashes of the question's text and of its own."""
    return content_hash(answer.question.text), content_hash(answer.text)


def sealed_answers(project_id: int) -> frozenset[tuple[str, str]]:
    """The sealed answers of a project, by :func:`seal_key`."""
    rows = SealedAnswer.objects.filter(project_id=project_id)
    return frozenset(rows.values_list("question_hash", "text_hash"))


def waiting_units(run: Run) -> Iterator[WorkUnit]:
    """Embedding units for texts that a judge writes; each waits for its judge unit, which must already be stored."""
    config = RunConfig.model_validate(run.config)
    if config.embedding is None:
        return
    judge_units = WorkUnit.objects.filter(
        run=run, kind=WorkUnit.Kind.JUDGE, run_judge__rubric_version__family=asked_back.NAME
    )
    for unit in judge_units.iterator(chunk_size=2000):
        yield WorkUnit(
            run=run,
            kind=WorkUnit.Kind.EMBED,
            question_id=unit.question_id,
            sample=unit.sample,
            answer_id=unit.answer_id,
            run_judge_id=unit.run_judge_id,
            repeat=unit.repeat,
            needs=unit,
            key=content_hash([WorkUnit.Kind.EMBED, unit.key]),
            state=WorkUnit.State.BLOCKED,
        )


def _build_unit(run: Run, config: RunConfig, step: UnitStep, template_unit: WorkUnit) -> WorkUnit:
    judge = step.judge
    scorer = [judge.judge_version.content_hash, judge.rubric_version.content_hash] if judge else []
    if step.metric:
        scorer = [step.metric]
    key = text_hash(
        [step.kind, template_unit.question.external_id, template_unit.sample, step.repeat, config.hash, scorer]
    )
    return WorkUnit(
        run=run,
        kind=step.kind,
        question_id=template_unit.question_id,
        sample=template_unit.sample,
        answer=template_unit.answer,
        run_judge=judge,
        repeat=step.repeat,
        metric=step.metric,
        key=key,
    )


# The sample number of collected answers, and of imported ones that name none.
DEFAULT_SAMPLE = 0


def make_run(
    answer_set: AnswerSet,
    profile: ProfileVersion,
    config: RunConfig,
    *,
    judges: Sequence[tuple[JudgeVersion, RubricVersion, bool]] = (),
    statuses: Mapping[tuple[int, int], VersionStatus] | None = None,
    name: str = "",
    by: User | None = None,
    budget: Decimal | None = None,
    start_token: UUID | None = None,
) -> Run:
    """Create a draft run. ``judges`` are judge, rubric and whether that judge is primary for the rubric; ``statuses``
    are the rubrics' statuses by the keys of judge and rubric, active by default.

    The caller chooses ``start_token``, so that a repeated request does not create two runs.

    :raises DomainError: ``answers_unfinished`` while another run collects the answers; ``rubric_needs_answers`` if an
        unproven version is to judge answers not collected yet, because it is unknown which of them are sealed."""
    if answer_set.content_hash is None and answer_set.runs.exists():
        raise DomainError("answers_unfinished")
    own_metrics = [*config.own_rules, *(name for _, rubric, _ in judges for name in rubric.rubric.names)]
    config = config.model_copy(update={"packages": stamps(own_metrics)})
    status_by_keys, content = statuses or {}, config.model_dump(mode="json")
    if answer_set.content_hash is None and any(status in UNAPPROVED for status in status_by_keys.values()):
        raise DomainError("rubric_needs_answers")
    with transaction.atomic():
        run = Run.objects.create(
            project_id=answer_set.project_id,
            answer_set=answer_set,
            profile_version=profile,
            name=name,
            config=content,
            config_hash=Run.hash_of(content, profile, answer_set),
            budget=budget,
            start_token=start_token or uuid4(),
            created_by=by,
        )
        RunJudge.objects.bulk_create(
            RunJudge(
                run=run,
                judge_version=judge,
                rubric_version=rubric,
                primary=primary,
                repeat_count=config.repeat,
                standing=status_by_keys.get((judge.pk, rubric.pk), VersionStatus.ACTIVE),
            )
            for judge, rubric, primary in judges
        )
    return run


def start(run: Run, by: User | None = None) -> bool:
    """Create the run's units and enqueue it; false if it was already started.

    Units of existing answers are created before the run begins, in transactions of some thousand. An interrupted start
    leaves a draft, and the next start creates the rest."""
    if run.state == Run.State.DRAFT and not collects_answers(run):
        insert_units(planned_units(run), ignore_conflicts=True)
    with transaction.atomic():
        if not _move(run, [Run.State.DRAFT], _state_after_start(run), "started", by, started_at=Now()):
            return False
        if collecting := WorkUnit.objects.bulk_create(collection_units(run), batch_size=UNIT_BATCH):
            insert_units(planned_units(run, collecting))
        insert_units(waiting_units(run))
        dispatch.enqueue_run(run.pk)
    return True


def begin(run: Run) -> bool:
    """Move from preflight to running once every judge is pinned; false if the run was in another state."""
    return _move(run, [Run.State.PREFLIGHT], Run.State.RUNNING, "checked", None, reason="")


def unpinned(run: Run) -> list[JudgeVersion]:
    """The judges behind an endpoint that no preflight of the run has pinned yet."""
    pinned = Preflight.objects.filter(run=run, outcome="ok").values("judge_version")
    rows = JudgeVersion.objects.filter(pk__in=run.judges.values("judge_version")).exclude(endpoint=None)
    return list(rows.exclude(pk__in=pinned).select_related("endpoint").order_by("pk"))


def _state_after_start(run: Run) -> str:
    return Run.State.PREFLIGHT if unpinned(run) else Run.State.RUNNING


def pause(run: Run, by: User | None = None, reason: str = "") -> bool:
    """Stop claiming; calls in flight finish and their results are stored."""
    return _move(run, [Run.State.RUNNING, Run.State.PREFLIGHT], Run.State.PAUSED, "paused", by, reason=reason)


def resume(run: Run, by: User | None = None) -> bool:
    """Resume a paused run with its frozen configuration. Ends outages and cooldowns, because a person has acted."""
    with transaction.atomic():
        judges, system = run.judges.values("judge_version"), run.answer_set.system_version.system_id
        for down in (Endpoint.objects.filter(judges__in=judges), System.objects.filter(pk=system)):
            down.exclude(down_since=None).update(down_since=None, fault="", cooldown_until=Now())
        resumed = _move(run, [Run.State.PAUSED], _state_after_start(run), "resumed", by, reason="")
        if resumed:
            dispatch.enqueue_run(run.pk)
    return resumed


def cancel(run: Run, by: User | None = None) -> bool:
    """Cancel a run for good: finished units stay, waiting ones are skipped. Results of its batches are still read,
    because they are paid for."""
    open_states = [Run.State.DRAFT, Run.State.PREFLIGHT, Run.State.RUNNING, Run.State.PAUSED]
    with transaction.atomic():
        cancelled = _move(run, open_states, Run.State.CANCELLED, "cancelled", by)
        if cancelled:
            WorkUnit.objects.filter(run=run, state__in=[State.BLOCKED, State.TODO]).update(
                state=State.SKIPPED, reason="cancelled"
            )
            if (batches := batch_hooks()) and batches.open().filter(run=run).exists():
                # The worker cancels the batches too.
                dispatch.enqueue_run(run.pk)
    return cancelled


def retry_failed(run: Run, by: User | None = None) -> int:
    """Retry every failed unit in the next round; their number.

    :raises DomainError: ``nothing_failed``, or ``run_not_retryable`` for a draft or cancelled run."""
    with transaction.atomic():
        failed = WorkUnit.objects.filter(run=run, state=State.FAILED)
        # A failed unit whose predecessor failed too has to wait for it again.
        blocked_by_failure = failed.filter(needs__state=State.FAILED).values_list("pk", flat=True)
        reset = {"round": F("round") + 1, "tries": 0, "reason": "", "finished_at": None, "not_before": None}
        blocked = [*blocked_by_failure, *_units_to_rescore(failed)]
        count = failed.exclude(pk__in=blocked).update(state=State.TODO, **reset)
        count += WorkUnit.objects.filter(pk__in=blocked).update(state=State.BLOCKED, **reset)
        if not count:
            raise DomainError("nothing_failed")
        states = [Run.State.RUNNING, Run.State.PAUSED, Run.State.COMPLETED, Run.State.INCOMPLETE]
        if not _move(run, states, _state_after_start(run), "retried", by, reason="", finished_at=None):
            raise DomainError("run_not_retryable")
        dispatch.enqueue_run(run.pk)
    return count


def _units_to_rescore(failed: QuerySet[WorkUnit]) -> list[int]:
    """Done units of answers that are collected again, such as rules that did not apply."""
    collecting = list(failed.filter(kind=WorkUnit.Kind.ASK).values_list("pk", flat=True))
    depends_on_them = Q(needs__in=collecting) | Q(needs__needs__in=collecting)
    return (
        list(WorkUnit.objects.filter(depends_on_them, state=State.DONE).values_list("pk", flat=True))
        if collecting
        else []
    )


def _move(run: Run, from_states: Sequence[str], to_state: str, verb: str, by: User | None, **fields: object) -> bool:
    """Change the state in one conditional update, with event and audit entry; refreshes the run."""
    with transaction.atomic():
        changed = bool(Run.objects.filter(pk=run.pk, state__in=from_states).update(state=to_state, **fields))
        if changed:
            RunEvent.objects.create(run=run, verb=verb, reason=str(fields.get("reason") or ""), created_by=by)
            audit.record(by, f"run.{verb}", run)
    run.refresh_from_db()
    return changed
