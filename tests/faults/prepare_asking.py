"""Fills a fresh database with a run that asks a system: ``python -m tests.faults.prepare_asking N CONNECTOR JSON``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import json
import os
import sys
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from evaluation.judges.shipped import profile_row
from evaluation.models import System
from evaluation.runs.creation import CollectionRequest, prepare_run
from evaluation.systems.services import save_system
from evaluation.worker.lifecycle import start
from tests.factories import make_question_set, question_spec


def main(count: int, connector: str, settings: dict[str, Any]) -> int:
    """The id of a started run of ``count`` questions to a system, four at a time, scored by rules."""
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, count + 1)])
    version = save_system(questions.project, "toy", connector, settings, None)
    System.objects.update(max_concurrency=4)
    answers = CollectionRequest(question_set=questions, version=version).create_answer_set(None)
    run = prepare_run(answers, profile_row(questions.project, "graphrag"), judge=None)
    start(run)
    return run.pk


if __name__ == "__main__":
    print(main(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])))
