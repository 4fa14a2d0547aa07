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
from tests.evaluation.scoring.families import profile_of
from tests.factories import make_answer_set, make_question_set, question_spec, unique
from tests.judge_server import JudgeServer

SIMILARITY = "semantic_similarity"


def endpoint_of(server: JudgeServer, settings: Any, model: str = "e5") -> Endpoint:
    """An endpoint that embeds on the server, which may be called."""
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    return Endpoint.objects.create(name=unique("embeddings"), base_url=server.base_url, embedding_model=model)


def answered(pairs: Sequence[tuple[str, str]]) -> AnswerSet:
    """Answers with the expected answer of each."""
    specs = [question_spec(n, category="c", references=(expected,)) for n, (_, expected) in enumerate(pairs, 1)]
    return make_answer_set(make_question_set(specs=specs), texts=[said for said, _ in pairs])


def similar(answers: AnswerSet) -> ProfileVersion:
    """A profile that reports similarity alone."""
    return profile_of(answers, reported=[SIMILARITY])


def drafted(pairs: Sequence[tuple[str, str]], **options: Any) -> Run:
    """A draft run of similarity over the pairs."""
    answers = answered(pairs)
    return prepare_run(answers, similar(answers), RunSpec(**options), judge=None)


def drained(run: Run) -> Run:
    """The run, started where it is a draft, after one turn of work."""
    start(run)
    return drain(run.pk, seconds=30)


def score(run: Run, metric: str = SIMILARITY) -> Score:
    """The only score of a metric in its highest round."""
    found = Score.objects.filter(run=run, metric__name=metric).order_by("-round", "-id").first()
    if found is None:
        pytest.fail(f"no score of {metric}")
    return found
