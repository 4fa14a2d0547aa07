"""Fills a fresh database with answers and a judge for the fault lane: ``python -m tests.faults.prepare N BASE_URL``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys
from decimal import Decimal

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.judges.shipped import profile_row, save_judge
from evaluation.models import Endpoint
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.worker.lifecycle import start
from tests.factories import make_answer_set, make_question_set, question_spec


def main(
    count: int,
    base_url: str,
    *,
    start_now: bool,
    batch: bool = False,
    budget: Decimal | None = None,
    max_concurrency: int = 8,
    other_url: str = "",
) -> int:
    """Return the id of a run of ``count`` answers judged at ``base_url``, and at ``other_url`` if given; started unless
    ``start_now`` is false."""
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, count + 1)])
    answers = make_answer_set(questions)
    endpoint = Endpoint.objects.create(
        name="local", base_url=base_url, max_concurrency=32 if budget else max_concurrency, batches=batch
    )
    judge = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    secondary = []
    if other_url:
        other_endpoint = Endpoint.objects.create(name="other", base_url=other_url, max_concurrency=max_concurrency)
        secondary = [save_judge(answers.project, "second", other_endpoint, model="test-model", language="en")]
    run = prepare_run(
        answers,
        profile_row(answers.project, "graphrag"),
        RunSpec(batch=batch, budget=budget),
        judge=judge,
        secondary=secondary,
    )
    if start_now:
        start(run)
    return run.pk


if __name__ == "__main__":
    options = dict(argument.split("=") for argument in sys.argv[3:] if "=" in argument)
    budget = Decimal(options["--budget"]) if "--budget" in options else None
    start_now = "--draft" not in sys.argv
    about = {
        "batch": "--batch" in sys.argv,
        "budget": budget,
        "max_concurrency": int(options.get("--places", "8")),
        "other_url": options.get("--other", ""),
    }
    print(main(int(sys.argv[1]), sys.argv[2], start_now=start_now, **about))
