"""Runs that collect answers from the example system, drained in the process of the test."""

from __future__ import annotations

from typing import Any

from evaluation.judges.shipped import profile_row
from evaluation.models import QuestionSet, Run, SystemVersion
from evaluation.runs.creation import CollectionRequest, prepare_run
from evaluation.systems.services import save_system
from evaluation.worker.lifecycle import start
from examples.rag_service import RagService
from tests.factories import make_question_set, question_spec


def make_questions(count: int = 6) -> QuestionSet:
    return make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, count + 1)])


def toy_system(service: RagService, question_set: QuestionSet, path: str = "/ask", **overrides: Any) -> SystemVersion:
    settings = {"address": service.origin + path, "timeout_seconds": 1.0, **overrides}
    return save_system(question_set.project, "toy", "http", settings, None)


def start_collection_run(
    service: RagService, count: int = 6, *, k: int = 5, kind: str = "full_rag", **overrides: Any
) -> Run:
    """A started run that collects answers and has only rule metrics."""
    question_set = make_questions(count)
    answers = CollectionRequest(
        question_set=question_set, version=toy_system(service, question_set, **overrides), k=k, evaluation_type=kind
    ).create_answer_set(None)
    run = prepare_run(answers, profile_row(question_set.project, "graphrag"), judge=None)
    start(run)
    return run
