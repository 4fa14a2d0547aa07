"""How good the questions of a set are."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.corpora.importing import SourceDocument, import_corpus
from evaluation.judges.shipping import profile_row
from evaluation.models import QuestionSet
from evaluation.runs.draining import drain
from evaluation.runs.making import prepare_run
from evaluation.work.lifecycle import start
from review.comparisons.set_quality import Difficulty, set_quality
from tests.factories import make_answer_set, make_project, make_question_set, make_user, question_spec

pytestmark = pytest.mark.django_db

PASSAGE = "Whoever is ill for more than three days hands in a certificate of a physician within the week."


def _set() -> QuestionSet:
    project = make_project()
    chunk = import_corpus(project, "c", [SourceDocument("a", PASSAGE)], by=None).corpus.chunks.get()
    texts = {
        1: "How many days of leave does a new employee have in the first year?",
        2: "How many days of leave does a new employee have in a first year?",
        3: "Is paid who hands in a certificate of a physician within the week?",
        4: "What does this passage say about the library?",
        5: "Who pays?",
    }
    specs = [question_spec(n, text=text, category="single_hop", keywords=((f"key{n}",),)) for n, text in texts.items()]
    specs[2] = specs[2].model_copy(update={"ground_truth_chunk_ids": (chunk.chunk_id,)})
    specs[4] = specs[4].model_copy(update={"references": ("The employer.", "휴가 중에는 아무도 내지 않는다.")})
    return make_question_set(project, specs=specs)


def test_likeness_leaks_and_answers_that_disagree_are_found() -> None:
    found = set_quality(_set())
    assert [(pair.one.id, pair.other.id) for pair in found.duplicates] == [("q1", "q2")]
    assert 0.7 <= found.duplicates[0].share < 1
    assert [spec.id for spec, _ in found.leaks] == ["q3", "q4"]
    assert [words for _, words in found.leaks][1] == "this passage"
    assert ([spec.id for spec, _ in found.apart], found.referenced) == (["q5"], 1)
    assert found.difficulties == ()


def test_difficulty_counts_the_systems_that_get_a_question_right(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "django_q"  # no worker listens: the test drains
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in (1, 2, 3)])
    right, wrong = ["The capital is city 1.", "city 2", "none"], ["no", "It is city 2.", "none"]
    for texts in (right, wrong):
        run = prepare_run(
            make_answer_set(questions, texts=texts), profile_row(questions.project, "graphrag"), judge=None
        )
        start(run)
        drain(run.pk, seconds=60)
    found = set_quality(questions)
    told = {one.question.id: (one.metric, one.right, one.systems) for one in found.difficulties}
    assert told == {"q1": ("keyword_hit", 1, 2), "q2": ("keyword_hit", 2, 2), "q3": ("keyword_hit", 0, 2)}
    assert ([one.question.id for one in found.never], [one.question.id for one in found.always]) == (["q3"], ["q2"])
    assert found.telling == 1
    assert isinstance(found.never[0], Difficulty)


def test_the_page_tells_it() -> None:
    questions = _set()
    client = Client()
    client.force_login(make_user(Role.VIEWER, questions.project))
    page = client.get(reverse("set-quality", args=[questions.pk])).content.decode()
    assert "this passage" in page
    assert "It shows once two systems or more have been asked." in page
