"""A run's life: made, started once, paused, resumed, cancelled, retried, settled.

    draft -> preflight -> running <-> paused -> cancelled
                             |
                             +-> completed | incomplete -> (retry_failed) -> running

The preflight is for judges behind an endpoint; it may be paused too, and is left out where there are none. Every step
is one conditional update, so that two people pressing the same button do it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.connectors.protocol import RECORDED
from evaluation.core.canonical import content_hash, text_hash
from evaluation.core.errors import Refused
from evaluation.extensions import batch_hooks
from evaluation.judging.embedding.similarity import EmbeddingChoice, TokenChoice
from evaluation.judging.families import asked_back
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
    Standing,
    System,
    User,
    WorkUnit,
)
from evaluation.models.run_spec import AskSpec, CallSpec
from evaluation.models.runs import UNPROVEN
from evaluation.worker import dispatch
from evaluation.worker.units import UNIT_BATCH, State, insert_units


class RunConfig(AskSpec, CallSpec):
    """What was asked for when the run was made. ``question_ids`` empty means all questions of the set. ``embeddings``
    are its metrics that need embeddings and no judge, computed with ``embedding`` and ``tokens`` where those are there.
    ``analysis`` is what Korean is read with where the run was made; runs from before that was kept have none.
    """

    rules: tuple[str, ...] = ()
    embeddings: tuple[str, ...] = ()
    embedding: EmbeddingChoice | None = None
    tokens: TokenChoice | None = None
    question_ids: tuple[str, ...] = ()
    analysis: str = ""

    @cached_property
    def hash(self) -> str:
        """Hash of the configuration, folded into the key of every unit of the run. On what way calls are made and what
        is installed are no part of it. Made once: it may hold the ids of every question."""
        return content_hash(self.model_dump(mode="json", exclude={"batch", "analysis"}))


def answers_in(run: Run) -> QuerySet[Answer]:
    """The newest answer to each question and sample that the run is about."""
    newer = Answer.objects.filter(
        answer_set_id=OuterRef("answer_set_id"),
        question_id=OuterRef("question_id"),
        sample=OuterRef("sample"),
        round__gt=OuterRef("round"),
    )
    answers = Answer.objects.filter(~Exists(newer), answer_set_id=run.answer_set_id).select_related("question")
    wanted = RunConfig.model_validate(run.config).question_ids
    return answers.filter(question__external_id__in=wanted) if wanted else answers


def is_asking(run: Run) -> bool:
    """Whether the run has to ask the system before there is anything to score: its answer set was made empty and no run
    has completed it yet."""
    answers = run.answer_set
    return answers.content_hash is None and answers.system_version.adapter != RECORDED


def questions_to_ask(run: Run) -> QuerySet[Question]:
    """The questions that the run asks the system, in their order; none where it asks nothing."""
    if not is_asking(run):
        return Question.objects.none()
    questions = Question.objects.filter(question_set_id=run.answer_set.question_set_id).order_by("position")
    wanted = RunConfig.model_validate(run.config).question_ids
    return questions.filter(external_id__in=wanted) if wanted else questions


def asking_units(run: Run) -> Iterator[WorkUnit]:
    """One unit per question that the run is about, where it asks the system; none elsewhere."""
    config, version = RunConfig.model_validate(run.config), run.answer_set.system_version
    for question in questions_to_ask(run):
        about = [question.external_id, SAMPLE, config.k, config.evaluation_type, version.content_hash]
        yield WorkUnit(
            run=run,
            kind=WorkUnit.Kind.ASK,
            question=question,
            sample=SAMPLE,
            key=content_hash([WorkUnit.Kind.ASK, *about]),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What is done with one answer: rules, embeddings, or one judgement by a judge."""

    kind: str
    judge: RunJudge | None = None
    repeat: int = 1


def steps(config: RunConfig, judges: Iterable[RunJudge]) -> Iterator[Step]:
    """What is done with each answer that these judges may judge."""
    if config.rules:
        yield Step(WorkUnit.Kind.RULES)
    if config.embeddings:
        yield Step(WorkUnit.Kind.EMBED)
    for judge in judges:
        if not judge.judge_version.is_jury:
            yield from (Step(WorkUnit.Kind.JUDGE, judge, repeat) for repeat in range(1, judge.repeat_count + 1))


@dataclass(frozen=True, slots=True)
class Bench:
    """A run's judges. Those that have not proved themselves (drafts and candidates) see no sealed answer."""

    judges: Sequence[RunJudge]
    sealed: frozenset[tuple[str, str]]

    @property
    def proven(self) -> list[RunJudge]:
        """Those that may judge sealed answers."""
        return [judge for judge in self.judges if judge.standing not in UNPROVEN]

    def may_judge(self, answer: Answer) -> Sequence[RunJudge]:
        """Those that may judge the answer."""
        return self.proven if self.sealed and seal_of(answer) in self.sealed else self.judges


def bench_of(run: Run) -> Bench:
    """The run's judges, and the answers of its project that are sealed, if that makes a difference."""
    judges = list(run.judges.select_related("judge_version", "rubric_version"))
    unproven = any(judge.standing in UNPROVEN for judge in judges)
    return Bench(judges, sealed_of(run.project_id) if unproven else frozenset())


def planned_units(run: Run, asked: Iterable[WorkUnit] = ()) -> Iterator[WorkUnit]:
    """One rules unit per answer, one for its embeddings, and one judge unit per answer, judge and repeat. Answers that
    are still to be given are those of the questions ``asked``, for which their units wait."""
    config, bench = RunConfig.model_validate(run.config), bench_of(run)
    answers = answers_in(run).order_by("question__position", "sample")
    if not bench.sealed:  # the texts are read only where a seal may be on them
        answers = answers.only("sample", "question__external_id")
    ids = list(answers.values_list("pk", flat=True))
    # A page at a time: SQLite lets nobody write who is in the middle of reading what others have changed since.
    for first in range(0, len(ids), UNIT_BATCH):
        for answer in answers.filter(pk__in=ids[first : first + UNIT_BATCH]):
            of = WorkUnit(question=answer.question, sample=answer.sample, answer=answer)
            yield from (_unit(run, config, step, of) for step in steps(config, bench.may_judge(answer)))
    for unit in asked:
        for step in steps(config, bench.judges):
            waiting = _unit(run, config, step, unit)
            waiting.needs, waiting.state = unit, State.BLOCKED
            yield waiting


def seal_of(answer: Answer) -> tuple[str, str]:
    """By what an answer is known as sealed: the hashes of its question's text and of its own."""
    return content_hash(answer.question.text), content_hash(answer.text)


def sealed_of(project_id: int) -> frozenset[tuple[str, str]]:
    """What is sealed in a project, as :func:`seal_of` tells it."""
    rows = SealedAnswer.objects.filter(project_id=project_id)
    return frozenset(rows.values_list("question_hash", "text_hash"))


def waiting_units(run: Run) -> Iterator[WorkUnit]:
    """Units that wait for another one of the run, which has to be there already: what a judge wrote is embedded."""
    config = RunConfig.model_validate(run.config)
    if config.embedding is None:
        return
    asked = WorkUnit.objects.filter(
        run=run, kind=WorkUnit.Kind.JUDGE, run_judge__rubric_version__family=asked_back.NAME
    )
    for unit in asked.iterator(chunk_size=2000):
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


def _unit(run: Run, config: RunConfig, step: Step, of: WorkUnit) -> WorkUnit:
    judge = step.judge
    scorer = [judge.judge_version.content_hash, judge.rubric_version.content_hash] if judge else []
    key = text_hash([step.kind, of.question.external_id, of.sample, step.repeat, config.hash, scorer])
    return WorkUnit(
        run=run,
        kind=step.kind,
        question_id=of.question_id,
        sample=of.sample,
        answer=of.answer,
        run_judge=judge,
        repeat=step.repeat,
        key=key,
    )


SAMPLE = 0  # of an asked answer, as of an imported one that names none


def make_run(
    answer_set: AnswerSet,
    profile: ProfileVersion,
    config: RunConfig,
    *,
    judges: Sequence[tuple[JudgeVersion, RubricVersion, bool]] = (),
    standings: Mapping[tuple[int, int], Standing] | None = None,
    name: str = "",
    by: User | None = None,
    budget: Decimal | None = None,
    start_token: UUID | None = None,
) -> Run:
    """A draft run. ``judges`` are judge, rubric and whether that judge is the primary one of its rubric; ``standings``
    tells by their keys how the rubric stands for the judge, active where nothing is said.

    ``start_token`` is chosen by whoever asks, so that asking twice does not make two runs.

    :raises Refused: ``answers_unfinished`` where another run still asks for the answers; ``rubric_needs_answers`` where
        a version that has not proved itself is to judge answers that are still to be asked for, so that nobody can
        tell yet which of them are sealed.
    """
    if answer_set.content_hash is None and answer_set.runs.exists():
        raise Refused("answers_unfinished")
    stand = standings or {}
    if answer_set.content_hash is None and any(standing in UNPROVEN for standing in stand.values()):
        raise Refused("rubric_needs_answers")
    with transaction.atomic():
        run = Run.objects.create(
            project_id=answer_set.project_id,
            answer_set=answer_set,
            profile_version=profile,
            name=name,
            config=config.model_dump(mode="json"),
            config_hash=content_hash([config.hash, profile.content_hash, answer_set.content_hash or ""]),
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
                standing=stand.get((judge.pk, rubric.pk), Standing.ACTIVE),
            )
            for judge, rubric, primary in judges
        )
    return run


def start(run: Run, by: User | None = None) -> bool:
    """Create the run's units and ring; false when it was started already.

    Units of answers that are there are made before the run begins, some thousand in a transaction: a start that is
    broken off leaves a draft, whose next start makes the rest.
    """
    if run.state == Run.State.DRAFT and not is_asking(run):
        insert_units(planned_units(run), ignore_conflicts=True)
    with transaction.atomic():
        if not _move(run, [Run.State.DRAFT], _working(run), "started", by, started_at=Now()):
            return False
        if asked := WorkUnit.objects.bulk_create(asking_units(run), batch_size=UNIT_BATCH):
            insert_units(planned_units(run, asked))
        insert_units(waiting_units(run))
        dispatch.ring(run.pk)
    return True


def begin(run: Run) -> bool:
    """From the preflight to work, once every judge is pinned; false when the run was in another state already."""
    return _move(run, [Run.State.PREFLIGHT], Run.State.RUNNING, "checked", None, reason="")


def unpinned(run: Run) -> list[JudgeVersion]:
    """The judges behind an endpoint that no preflight of the run has pinned yet."""
    pinned = Preflight.objects.filter(run=run, outcome="ok").values("judge_version")
    rows = JudgeVersion.objects.filter(pk__in=run.judges.values("judge_version")).exclude(endpoint=None)
    return list(rows.exclude(pk__in=pinned).select_related("endpoint").order_by("pk"))


def _working(run: Run) -> str:
    return Run.State.PREFLIGHT if unpinned(run) else Run.State.RUNNING


def pause(run: Run, by: User | None = None, reason: str = "") -> bool:
    """Stop claiming; calls in flight end and are kept."""
    return _move(run, [Run.State.RUNNING, Run.State.PREFLIGHT], Run.State.PAUSED, "paused", by, reason=reason)


def resume(run: Run, by: User | None = None) -> bool:
    """Go on with a paused run under its frozen configuration. Who did not answer is called at once: somebody has seen
    to it."""
    with transaction.atomic():
        judges, system = run.judges.values("judge_version"), run.answer_set.system_version.system_id
        for down in (Endpoint.objects.filter(judges__in=judges), System.objects.filter(pk=system)):
            down.exclude(down_since=None).update(down_since=None, fault="", cooldown_until=Now())
        moved = _move(run, [Run.State.PAUSED], _working(run), "resumed", by, reason="")
        if moved:
            dispatch.ring(run.pk)
    return moved


def cancel(run: Run, by: User | None = None) -> bool:
    """End a run for good; what is done stays, what waits is skipped. What providers have done of its batches by then is
    still read: it is paid for."""
    open_states = [Run.State.DRAFT, Run.State.PREFLIGHT, Run.State.RUNNING, Run.State.PAUSED]
    with transaction.atomic():
        moved = _move(run, open_states, Run.State.CANCELLED, "cancelled", by)
        if moved:
            WorkUnit.objects.filter(run=run, state__in=[State.BLOCKED, State.TODO]).update(
                state=State.SKIPPED, reason="cancelled"
            )
            if (batches := batch_hooks()) and batches.open().filter(run=run).exists():
                dispatch.ring(run.pk)  # to have them cancelled too
    return moved


def retry_failed(run: Run, by: User | None = None) -> int:
    """Put every failed unit back to work in the next round; how many there were.

    :raises Refused: ``nothing_failed``, or ``run_not_retryable`` for a draft or cancelled run.
    """
    with transaction.atomic():
        failed = WorkUnit.objects.filter(run=run, state=State.FAILED)
        # A failed unit whose predecessor failed too has to wait for it again.
        waiting = failed.filter(needs__state=State.FAILED).values_list("pk", flat=True)
        again = {"round": F("round") + 1, "tries": 0, "reason": "", "finished_at": None, "not_before": None}
        blocked = [*waiting, *_scored_again(failed)]
        count = failed.exclude(pk__in=blocked).update(state=State.TODO, **again)
        count += WorkUnit.objects.filter(pk__in=blocked).update(state=State.BLOCKED, **again)
        if not count:
            raise Refused("nothing_failed")
        states = [Run.State.RUNNING, Run.State.PAUSED, Run.State.COMPLETED, Run.State.INCOMPLETE]
        if not _move(run, states, _working(run), "retried", by, reason="", finished_at=None):
            raise Refused("run_not_retryable")
        dispatch.ring(run.pk)
    return count


def _scored_again(failed: QuerySet[WorkUnit]) -> list[int]:
    """The units that are done with an answer that is asked for again, such as rules that did not apply to it."""
    asked = list(failed.filter(kind=WorkUnit.Kind.ASK).values_list("pk", flat=True))
    waits = Q(needs__in=asked) | Q(needs__needs__in=asked)
    return list(WorkUnit.objects.filter(waits, state=State.DONE).values_list("pk", flat=True)) if asked else []


def _move(run: Run, before: Sequence[str], after: str, verb: str, by: User | None, **fields: object) -> bool:
    """One conditional update with its event and audit entry; the run in hand is refreshed."""
    with transaction.atomic():
        moved = bool(Run.objects.filter(pk=run.pk, state__in=before).update(state=after, **fields))
        if moved:
            RunEvent.objects.create(run=run, verb=verb, reason=str(fields.get("reason") or ""), created_by=by)
            audit.record(by, f"run.{verb}", run)
    run.refresh_from_db()
    return moved
