"""Asking for a run and steering it: what pages, commands and REST do with one call each."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.db import transaction

from evaluation.accounts.lock_project import lock_project
from evaluation.core.errors import Refused
from evaluation.judges.bench import bench_of
from evaluation.judges.shipping import profile_row
from evaluation.models import AnswerSet, Run, User
from evaluation.profiles.spec import DEFAULT_PROFILE
from evaluation.runs.making import QuestionFilter, prepare_run
from evaluation.work.lifecycle import cancel, pause, resume, start

ALL_QUESTIONS = QuestionFilter()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. ``judge`` empty is the project's own, else the baseline; ``None`` is no judge.
    ``beside`` names judges that are only compared with it, or with the rule of a ``jury`` its other members;
    ``baseline`` sets the offline baseline beside them.

    ``batch`` hands calls over in batches, cheaper and later. ``embeddings`` is the name of an endpoint, ``local`` or
    ``none``, empty for what there is; ``metrics`` are computed beside the profile's. ``start_token`` makes asking twice
    one run. ``budget`` is in US dollars.
    """

    profile: str = DEFAULT_PROFILE
    judge: str | None = ""
    beside: tuple[str, ...] = ()
    jury: str = ""
    baseline: bool = True
    embeddings: str = ""
    metrics: tuple[str, ...] = ()
    name: str = ""
    questions: QuestionFilter = ALL_QUESTIONS
    repeat: int = 1
    max_concurrency: int = 32
    use_cache: bool = True
    batch: bool = False
    budget: Decimal | None = None
    start_token: UUID | None = None


def ask_for_run(answers: AnswerSet, wanted: Wanted, by: User | None) -> Run:
    """Make and start a run; the run that the same start token has made already, where there is one.

    :raises UnknownName: for a profile, judge, metric or embedding endpoint that there is not.
    :raises Refused: see :func:`prepare_run`; ``no_question_selected``; ``start_token_used`` by a run of another answer
        set.
    """
    with transaction.atomic():
        lock_project(answers.project_id)
        if existing := _asked_before(answers, wanted.start_token):
            return existing
        run = _prepared(answers, wanted, by)
        start(run, by)
    return run


def _prepared(answers: AnswerSet, wanted: Wanted, by: User | None) -> Run:
    project = answers.project
    bench = (
        None
        if wanted.judge is None
        else bench_of(project, [wanted.judge, *wanted.beside], wanted.jury, baseline=wanted.baseline)
    )
    return prepare_run(
        answers,
        profile_row(project, wanted.profile),
        judge=bench.primary if bench else None,
        beside=bench.beside if bench else (),
        name=wanted.name,
        by=by,
        budget=wanted.budget,
        repeat=wanted.repeat,
        max_concurrency=wanted.max_concurrency,
        use_cache=wanted.use_cache,
        batch=wanted.batch,
        question_ids=wanted.questions.select(answers.question_set),
        start_token=wanted.start_token,
        embeddings_of=wanted.embeddings,
        also=wanted.metrics,
    )


def _asked_before(answers: AnswerSet, token: UUID | None) -> Run | None:
    run = Run.objects.filter(start_token=token).first() if token else None
    if run and run.answer_set_id != answers.pk:
        raise Refused("start_token_used")
    return run


def pause_run(run: Run, by: User | None) -> Run:
    """Pause a running run; a paused one stays as it is.

    :raises Refused: ``run_not_running``.
    """
    if not pause(run, by) and run.state != Run.State.PAUSED:
        raise Refused("run_not_running", state=run.get_state_display())
    return run


def resume_run(run: Run, by: User | None) -> Run:
    """Go on with a paused run; a running one stays as it is.

    :raises Refused: ``run_not_paused``.
    """
    if not resume(run, by) and run.state not in {Run.State.RUNNING, Run.State.PREFLIGHT}:
        raise Refused("run_not_paused", state=run.get_state_display())
    return run


def cancel_run(run: Run, by: User | None) -> Run:
    """End a run for good; a cancelled one stays as it is.

    :raises Refused: ``run_ended``.
    """
    if not cancel(run, by) and run.state != Run.State.CANCELLED:
        raise Refused("run_ended", state=run.get_state_display())
    return run
