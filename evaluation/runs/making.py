"""Asking for a run and steering it, with one call each for pages, commands and REST."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import partial

from django.db import transaction
from pydantic import ConfigDict

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.connectors.protocol import FULL_RAG
from evaluation.core.errors import Refused, UnknownName
from evaluation.core.metric_specs import Direction
from evaluation.criteria.rubrics import seats_of
from evaluation.criteria.services import active, active_by_name, idle_names
from evaluation.extensions import require
from evaluation.judges.embeddings import chosen_embedding, chosen_tokens
from evaluation.judges.shipping import bench_of, profile_row
from evaluation.judging.catalogue import family_named, judge_metric, judge_metrics
from evaluation.judging.embedding.similarity import BERT_SCORE, EMBEDDING_NAMES
from evaluation.judging.families import asked_back
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.metrics.normalise import analysis
from evaluation.models import (
    AnswerSet,
    CriterionEvent,
    JudgeVersion,
    ProfileVersion,
    Project,
    QuestionSet,
    RubricVersion,
    Run,
    Standing,
    SystemVersion,
    User,
)
from evaluation.models.run_spec import DEFAULT, AskSpec, CallSpec, RunSpec
from evaluation.profiles.spec import ProfileSpec, metrics_by_report_name
from evaluation.runs.budgets import check_budget, set_budget
from evaluation.runs.selectors import selected_questions
from evaluation.worker.lifecycle import RunConfig, cancel, make_run, pause, resume, start


def _criteria(project_id: int, spec: ProfileSpec, names: Collection[str]) -> list[CriterionEvent]:
    """The custom criteria among the names, in the versions that are in force.

    :raises Refused: ``criterion_not_active`` where one is not in force, ``criterion_not_weighable`` where the profile
        gives a weight to classes or to a criterion of which less is better.
    """
    if idle := idle_names(project_id, names):
        raise Refused("criterion_not_active", names=idle)
    found = active_by_name(project_id, names)
    weighed = {name for part in spec.parts for name in (part.metric, part.otherwise)}
    weighed |= {spec.whole_score.metric} if spec.whole_score else set()
    odd = sorted(n for n in weighed & found.keys() if found[n].version.read().direction is not Direction.HIGHER)
    if odd:
        raise Refused("criterion_not_weighable", names=odd)
    return [found[name] for name in names if name in found]


def prepare_run(
    answer_set: AnswerSet,
    profile: ProfileVersion,
    spec: RunSpec = DEFAULT,
    *,
    judge: JudgeVersion | None,
    beside: Sequence[JudgeVersion] = (),
    by: User | None = None,
) -> Run:
    """A draft run of the profile's rule metrics and, with a judge, of its judge metrics; one unit per rubric family.
    Rule metrics that a family decides are left to the judge.

    ``judge`` is the one whose values count; those ``beside`` it are members of a jury or only compared. They and the
    profile are those that ``spec`` names. Passages without answers have no judge. Empty ``embeddings`` leave the
    endpoint to :func:`chosen_embedding`.

    :raises Refused: see :func:`_criteria`, :func:`check_budget` and :func:`selected_questions`; ``no_batches``,
        ``feature_off``; ``rubric_not_used`` by the run's metrics, ``rubrics_of_jury``, ``rubric_needs_answers``.
    :raises UnknownName: for a metric that nothing computes, or a version of a rubric that there is not.
    """
    parts = ProfileSpec.model_validate(profile.spec)
    rules, judged = {m.spec.name for m in RULE_METRICS}, {s.name for s in judge_metrics()}
    names, criteria = _named(profile, parts, spec.metrics, [*rules, *judged, *EMBEDDING_NAMES])
    judge = judge if (generated := answer_set.evaluation_type == FULL_RAG) else None
    families = sorted({judge_metric(name).rubric_family for name in names if judge and name in judged})
    decided = {metric.spec.name for family in families for metric in family_named(family).decides}
    embeddings = tuple(name for name in names if name in EMBEDDING_NAMES) if generated else ()
    config = RunConfig(
        **AskSpec.model_validate(answer_set, from_attributes=True).model_dump(),
        **spec.model_dump(include=set(CallSpec.model_fields)),
        rules=tuple(name for name in names if name in rules and name not in decided),
        embeddings=embeddings,
        embedding=chosen_embedding(judge, spec.embeddings) if embeddings or asked_back.NAME in families else None,
        tokens=chosen_tokens() if BERT_SCORE.name in embeddings else None,
        question_ids=selected_questions(answer_set.question_set, spec),
        analysis=analysis(),
    )
    _check_batches(spec.batch, [one for one in (judge, *beside) if one])
    judges, stand = _seated((judge, *beside) if judge else (), families, spec.rubrics, criteria, spec.language)
    check_budget(spec.budget, [one for one, _, _ in judges], config)
    made = partial(make_run, answer_set, profile, config, judges=judges, standings=stand, start_token=spec.start_token)
    return made(name=spec.name, by=by, budget=spec.budget)


def _seated(
    bench: Sequence[JudgeVersion],
    families: Sequence[str],
    rubrics: Sequence[str],
    criteria: Sequence[CriterionEvent],
    language: str,
) -> tuple[list[tuple[JudgeVersion, RubricVersion, bool]], dict[tuple[int, int], Standing]]:
    """Every judge with each rubric it judges by and whether it counts, and why each rubric was taken.

    :raises Refused: see :func:`prepare_run`.
    """
    _check_rubrics(rubrics, families, bench[0] if bench else None)
    judges: list[tuple[JudgeVersion, RubricVersion, bool]] = []
    standings: dict[tuple[int, int], Standing] = {}
    for place, one in enumerate(bench):
        for seats in seats_of(one, families, rubrics, language):
            judges += [(one, seat.rubric, place == 0 and seat is seats[0]) for seat in seats]
            standings |= {(one.pk, seat.rubric.pk): seat.standing for seat in seats}
        judges += [(one, event.rubric(language or one.language), place == 0) for event in criteria]
    return judges, standings


def _check_rubrics(rubrics: Sequence[str], families: Sequence[str], judge: JudgeVersion | None) -> None:
    asked = [name.rpartition("@")[0] for name in dict.fromkeys(rubrics)]
    if unused := sorted(set(asked) - set(families)):
        raise Refused("rubric_not_used", families=unused)
    if asked and judge and judge.is_baseline:
        raise Refused("rubric_of_baseline")
    if judge and judge.is_jury and len(set(asked)) < len(asked):
        raise Refused("rubrics_of_jury")


def _named(
    profile: ProfileVersion, spec: ProfileSpec, also: Collection[str], computed: Collection[str]
) -> tuple[Collection[str], list[CriterionEvent]]:
    """The profile's metrics and those to compute beside them, which may be named as reports show them; and the custom
    criteria among them.

    :raises UnknownName: for one that nothing computes.
    :raises Refused: see :func:`_criteria`.
    """
    shown = metrics_by_report_name(profile.spec)
    beside = [name if name in computed else shown.get(name, name) for name in also]
    names = dict.fromkeys([*spec.metrics, *beside])
    criteria = _criteria(profile.project_id, spec, names)
    known = [*computed, *(event.criterion.name for event in active(profile.project_id))]
    for name in beside:
        if name not in known:
            raise UnknownName("metric", name, known)
    return names, criteria


def _check_batches(batch: bool, judges: Sequence[JudgeVersion]) -> None:
    if not batch:
        return
    require("batches")
    if not any(one.endpoint and one.endpoint.batches for one in judges):
        raise Refused("no_batches")


class Asking(AskSpec):
    """Answers that are still to be asked for: of which system to which questions."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    question_set: QuestionSet
    version: SystemVersion

    @property
    def project(self) -> Project:
        """Where the run will be."""
        return self.question_set.project

    def empty_set(self, by: User | None) -> AnswerSet:
        """Make the empty answer set for which the first run of it asks the system."""
        answers = AnswerSet.objects.create(
            project_id=self.question_set.project_id,
            question_set=self.question_set,
            system_version=self.version,
            k=self.k,
            evaluation_type=self.evaluation_type,
            source=self.version.adapter,
            created_by=by,
        )
        audit.record(by, "answer_set.asked", answers)
        return answers


def draft_run(source: AnswerSet | Asking, spec: RunSpec, by: User | None) -> Run:
    """Make a run without starting it. To be called in a transaction.

    :raises UnknownName: for a profile, judge, metric or embedding endpoint that there is not.
    :raises Refused: see :func:`prepare_run`; ``judge_needed``.
    """
    project = source.project
    bench = None
    if spec.judge is not None:
        bench = bench_of(project, [spec.judge, *spec.beside], spec.jury, baseline=spec.baseline)
    return prepare_run(
        source.empty_set(by) if isinstance(source, Asking) else source,
        profile_row(project, spec.profile),
        spec,
        judge=bench.primary if bench else None,
        beside=bench.beside if bench else (),
        by=by,
    )


def ask_for_run(source: AnswerSet | Asking, spec: RunSpec, by: User | None) -> Run:
    """Make and start a run; the run that the same start token has made already, where there is one.

    :raises UnknownName: see :func:`draft_run`.
    :raises Refused: see :func:`draft_run`; ``start_token_used`` by a run of other answers.
    """
    with transaction.atomic():
        lock_project(source.project.pk)
        token = spec.start_token
        made = Run.objects.select_related("answer_set").filter(start_token=token).first() if token else None
        if made is None:
            made = draft_run(source, spec, by)
            start(made, by)
        elif not _is_of(made.answer_set, source):
            raise Refused("start_token_used")
    return made


def _is_of(answers: AnswerSet, source: AnswerSet | Asking) -> bool:
    if isinstance(source, AnswerSet):
        return answers == source
    asked = (source.question_set.pk, source.version.pk)
    return (answers.question_set_id, answers.system_version_id) == asked


def pause_run(run: Run, by: User | None) -> Run:
    """Pause a running run; a paused one stays as it is.

    :raises Refused: ``run_not_running``.
    """
    return _steered(run, pause(run, by), [Run.State.PAUSED], "run_not_running")


def resume_run(run: Run, by: User | None, budget: Decimal | None = None) -> Run:
    """Go on with a paused run, under another budget where one is given; a running one stays as it is.

    :raises Refused: ``run_not_paused``; see :func:`set_budget`.
    """
    if run.state == Run.State.PAUSED:
        set_budget(run, budget, by)
    return _steered(run, resume(run, by), [Run.State.RUNNING, Run.State.PREFLIGHT], "run_not_paused")


def cancel_run(run: Run, by: User | None) -> Run:
    """End a run for good; a cancelled one stays as it is.

    :raises Refused: ``run_ended``.
    """
    return _steered(run, cancel(run, by), [Run.State.CANCELLED], "run_ended")


def _steered(run: Run, moved: bool, there: Sequence[str], refusal: str) -> Run:
    if not moved and run.state not in there:
        raise Refused(refusal, state=run.get_state_display())
    return run
