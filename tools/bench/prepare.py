"""Prepare answers for the bench; print the id of a started run: ``python -m tools.bench.prepare CALLS BASE_URL LIMIT``.
``python -m tools.bench.prepare --judges LIMIT BASE_URL BASE_URL`` adds the judges ``first`` and ``second`` to the only
project."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.judges.shipped import profile_row, save_judge, shipped_rubric_row
from evaluation.models import Answer, AnswerSet, Context, Endpoint, JudgeVersion, Project
from evaluation.worker.lifecycle import RunConfig, make_run, start
from tests.factories import make_answer_set, make_question_set, question_spec

FAMILIES = ("answer_quality", "answer_class")  # one call each: three levels, and one class
PASSAGE = "The river rises in the north and reaches the sea after three hundred kilometres of hills and fields. "


def main(calls: int, base_url: str, concurrency: int) -> int:
    """The id of a run with two judge calls per answer and no rules."""
    answer_set, judge = store_answers(calls // len(FAMILIES), base_url, concurrency)
    profile = profile_row(answer_set.project, "graphrag")
    judges = [(judge, shipped_rubric_row(family, "en"), True) for family in FAMILIES]
    run = make_run(answer_set, profile, RunConfig(max_concurrency=concurrency), judges=judges)
    start(run)
    return run.pk


def store_answers(answers: int, base_url: str, concurrency: int) -> tuple[AnswerSet, JudgeVersion]:
    """So many answers with three passages of 100 words each, and a judge ``remote``."""
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, answers + 1)])
    answer_set = make_answer_set(questions)
    Context.objects.bulk_create(
        Context(answer=answer, position=position, chunk_id=f"c{position}", text=PASSAGE * 5, source="atlas")
        for answer in Answer.objects.filter(answer_set=answer_set)
        for position in (1, 2, 3)
    )
    endpoint = Endpoint.objects.create(name="local", base_url=base_url, max_concurrency=concurrency)
    return answer_set, save_judge(answer_set.project, "remote", endpoint, model="test-model", language="en")


def save_judges(concurrency: int, base_urls: Sequence[str]) -> None:
    """A judge at an endpoint of its own for each address."""
    for name, base_url in zip(("first", "second"), base_urls, strict=True):
        endpoint = Endpoint.objects.create(name=name, base_url=base_url, max_concurrency=concurrency)
        save_judge(Project.objects.get(), name, endpoint, model="test-model", language="en")


if __name__ == "__main__":
    if sys.argv[1] == "--judges":
        save_judges(int(sys.argv[2]), sys.argv[3:])
    else:
        print(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
