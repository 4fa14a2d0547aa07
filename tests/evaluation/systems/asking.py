"""Runs that ask the toy system, for tests that drain them in the test's own process."""

from __future__ import annotations

from typing import Any

from evaluation.judges.shipped import profile_row
from evaluation.models import QuestionSet, Run, SystemVersion
from evaluation.runs.creation import CollectionRequest, prepare_run
from evaluation.systems.services import save_system
from evaluation.worker.lifecycle import start
from examples.rag_service import RagService
from tests.factories import make_question_set, question_spec


def questions(count: int = 6) -> QuestionSet:
    return make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, count + 1)])


def toy_system(service: RagService, asked: QuestionSet, path: str = "/ask", **given: Any) -> SystemVersion:
    settings = {"address": service.origin + path, "timeout_seconds": 1.0, **given}
    return save_system(asked.project, "toy", "http", settings, None)


def asking_run(service: RagService, count: int = 6, *, k: int = 5, kind: str = "full_rag", **given: Any) -> Run:
    """A started run of rules alone."""
    asked = questions(count)
    answers = CollectionRequest(
        question_set=asked, version=toy_system(service, asked, **given), k=k, evaluation_type=kind
    ).create_answer_set(None)
    run = prepare_run(answers, profile_row(asked.project, "graphrag"), judge=None)
    start(run)
    return run
