"""A run's frozen configuration and the units of work that follow from it.

The frozen configuration of a run: the typed window on ``Run.config``.

Which units of work a run consists of.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from evaluation.core.canonical import content_hash
from evaluation.core.samples import FrozenModel
from evaluation.embedding.choice import EmbeddingChoice, TokenChoice
from evaluation.judging.families import asked_back
from evaluation.models import Answer, Run, RunJudge, WorkUnit


class RunConfig(FrozenModel):
    """What was asked for when the run was made. ``question_ids`` empty means all questions of the set. ``embeddings``
    are its metrics that need embeddings and no judge, computed with ``embedding`` and ``tokens`` where those are there.
    ``batch`` hands the calls of judges to their providers in batches, where the endpoint takes them.
    """

    evaluation_type: str = "full_rag"
    k: int = Field(default=5, ge=1, le=50)
    rules: tuple[str, ...] = ()
    embeddings: tuple[str, ...] = ()
    embedding: EmbeddingChoice | None = None
    tokens: TokenChoice | None = None
    repeat: int = Field(default=1, ge=1, le=50)
    max_concurrency: int = Field(default=32, ge=1, le=1000)
    use_cache: bool = True
    question_ids: tuple[str, ...] = ()
    batch: bool = False

    @property
    def hash(self) -> str:
        """Hash of the configuration, folded into the key of every unit of the run. On what way calls are made is no
        part of it."""
        return content_hash(self.model_dump(mode="json", exclude={"batch"}))


def answers_of(run: Run) -> list[Answer]:
    """The newest answer to each question and sample that the run is about."""
    wanted = RunConfig.model_validate(run.config).question_ids
    answers = Answer.objects.filter(answer_set_id=run.answer_set_id).select_related("question")
    if wanted:
        answers = answers.filter(question__external_id__in=wanted)
    newest = {(a.question_id, a.sample): a for a in answers.order_by("question__position", "sample", "round")}
    return list(newest.values())


def planned_units(run: Run) -> Iterator[WorkUnit]:
    """One rules unit per answer, one for its embeddings, and one judge unit per answer, judge and repeat."""
    config = RunConfig.model_validate(run.config)
    judges = list(run.judges.select_related("judge_version", "rubric_version"))
    for answer in answers_of(run):
        if config.rules:
            yield _unit(run, config, WorkUnit.Kind.RULES, answer)
        if config.embeddings:
            yield _unit(run, config, WorkUnit.Kind.EMBED, answer)
        for judge in judges:
            if judge.judge_version.is_jury:
                continue
            for repeat in range(1, judge.repeat_count + 1):
                yield _unit(run, config, WorkUnit.Kind.JUDGE, answer, judge, repeat)


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


def _unit(
    run: Run, config: RunConfig, kind: str, answer: Answer, judge: RunJudge | None = None, repeat: int = 1
) -> WorkUnit:
    scorer = [judge.judge_version.content_hash, judge.rubric_version.content_hash] if judge else []
    key = content_hash([kind, answer.question.external_id, answer.sample, repeat, config.hash, scorer])
    return WorkUnit(
        run=run,
        kind=kind,
        question_id=answer.question_id,
        sample=answer.sample,
        answer=answer,
        run_judge=judge,
        repeat=repeat,
        key=key,
    )
