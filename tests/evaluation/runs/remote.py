"""Runs judged by a server on real sockets, drained in the process of the test."""

from __future__ import annotations

from typing import Any

from evaluation.judges.shipped import profile_row, save_judge
from evaluation.models import AnswerSet, Endpoint, Run
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from tests.factories import make_answer_set, make_question_set, question_spec, unique
from tests.judge_server import JudgeServer


def make_answers(count: int) -> AnswerSet:
    """An answer set with correct answers to ``count`` questions."""
    return make_answer_set(
        make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, count + 1)])
    )


def remote_run(server: JudgeServer, answers: AnswerSet | int = 6, **options: Any) -> Run:
    """A draft run with three judged metrics and four rule metrics for each answer."""
    answer_set = make_answers(answers) if isinstance(answers, int) else answers
    endpoint = Endpoint.objects.filter(base_url=server.base_url).first() or Endpoint.objects.create(
        name=unique("endpoint"),
        base_url=server.base_url,
        max_concurrency=options.pop("concurrency", 8),
        batches=bool(options.get("batch")),
    )
    judge = save_judge(
        answer_set.project,
        "remote",
        endpoint,
        model=options.pop("model", "judge-1"),
        language="en",
        params=options.pop("params", None),
        method=options.pop("method", "said"),
    )
    secondary_judges = options.pop("beside", ())
    return prepare_run(
        answer_set,
        profile_row(answer_set.project, "graphrag"),
        RunSpec(**options),
        judge=judge,
        secondary=secondary_judges,
    )


def start_and_drain(run: Run, seconds: float = 30) -> Run:
    """Start the run and drain it once."""
    start(run)
    return drain(run.pk, seconds=seconds)
