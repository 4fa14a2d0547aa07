"""Many answers to be judged by one call each: ``python -m tests.faults.prepare_many COUNT BASE_URL PLACES [RUNS]``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.judges.shipped import profile_row, save_judge, shipped_rubric_row
from evaluation.models import Answer, Context, Endpoint
from evaluation.worker.lifecycle import RunConfig, make_run, start
from tests.factories import make_answer_set, make_question_set, question_spec


def main(count: int, base_url: str, max_concurrency: int, runs: int = 1) -> list[int]:
    """The ids of the started runs, all of the same answers."""
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, count + 1)])
    answers = make_answer_set(make_question_set(questions.project, specs=0))
    type(answers).objects.filter(pk=answers.pk).update(question_set=questions)
    answers.refresh_from_db()
    stored_answers = Answer.objects.bulk_create(
        Answer(
            answer_set=answers,
            question=question,
            status="ok",
            text=f"The capital is city {question.external_id}.",
            text_hash="0" * 64,
            retrieves=True,
        )
        for question in questions.questions.all()
    )
    Context.objects.bulk_create(Context(answer=answer, position=0, text=answer.text) for answer in stored_answers)
    endpoint = Endpoint.objects.create(name="local", base_url=base_url, max_concurrency=max_concurrency)
    judge = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    profile, rubric = profile_row(answers.project, "graphrag"), shipped_rubric_row("answer_quality", "en")
    config = RunConfig(use_cache=runs == 1)
    made_runs = [make_run(answers, profile, config, judges=[(judge, rubric, True)]) for _ in range(runs)]
    for run in made_runs:
        start(run)
    return [run.pk for run in made_runs]


if __name__ == "__main__":
    print(*main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:])), sep="\n")
