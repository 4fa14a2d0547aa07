"""Runs whose embeddings come from a scripted server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evaluation.models import AnswerSet, Endpoint, ProfileVersion, Run, Score
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from tests.evaluation.scoring.families import make_profile_version
from tests.factories import make_answer_set, make_question_set, question_spec, unique
from tests.judge_server import JudgeServer

SIMILARITY = "semantic_similarity"


def make_endpoint(server: JudgeServer, settings: Any, model: str = "e5") -> Endpoint:
    """Create an endpoint for embeddings on the allowed server."""
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    return Endpoint.objects.create(name=unique("embeddings"), base_url=server.base_url, embedding_model=model)


def make_answer_pairs(pairs: Sequence[tuple[str, str]]) -> AnswerSet:
    """An answer set from pairs of answer and expected answer."""
    specs = [question_spec(n, category="c", references=(expected,)) for n, (_, expected) in enumerate(pairs, 1)]
    return make_answer_set(make_question_set(specs=specs), texts=[text for text, _ in pairs])


def similarity_profile(answers: AnswerSet) -> ProfileVersion:
    """A profile with semantic similarity only."""
    return make_profile_version(answers, reported=[SIMILARITY])


def draft_similarity_run(pairs: Sequence[tuple[str, str]], **options: Any) -> Run:
    """A draft run that scores similarity of the pairs."""
    answers = make_answer_pairs(pairs)
    return prepare_run(answers, similarity_profile(answers), RunSpec(**options), judge=None)


def complete_run(run: Run) -> Run:
    """Start the run if it is a draft, and drain it once."""
    start(run)
    return drain(run.pk, seconds=30)


def latest_score(run: Run, metric: str = SIMILARITY) -> Score:
    """The score of a metric with the highest round."""
    row = Score.objects.filter(run=run, metric__name=metric).order_by("-round", "-id").first()
    if row is None:
        pytest.fail(f"no score of {metric}")
    return row
