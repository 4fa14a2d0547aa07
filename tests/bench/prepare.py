"""Answers for the bench; prints the id of a started run: ``python -m tests.bench.prepare CALLS BASE_URL LIMIT``."""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.judges.models import Endpoint  # noqa: E402 -- after the setup
from evaluation.runs.config import RunConfig  # noqa: E402
from evaluation.runs.lifecycle import make_run, start  # noqa: E402
from evaluation.shipping import profile_row, save_judge, shipped_rubric_row  # noqa: E402
from tests.factories import make_answer_set, make_question_set, question_spec  # noqa: E402


def main(calls: int, base_url: str, concurrency: int) -> int:
    """The id of a run with one judge call per answer and no rules."""
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, calls + 1)])
    answers = make_answer_set(questions)
    endpoint = Endpoint.objects.create(name="local", base_url=base_url, max_concurrency=concurrency)
    judge = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    rubric = shipped_rubric_row("answer_quality", "en")
    profile = profile_row(answers.project, "graphrag")
    run = make_run(answers, profile, RunConfig(max_concurrency=concurrency), judges=[(judge, rubric, True)])
    start(run)
    return run.pk


if __name__ == "__main__":
    print(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
