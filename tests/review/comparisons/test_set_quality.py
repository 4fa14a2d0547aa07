"""Quality checks of a question set."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.extensions import REGISTRY, Feature
from evaluation.judges.shipped import profile_row
from evaluation.models import MetricDefinition, Project, QuestionSet
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from review.comparisons.set_quality import Difficulty, set_quality
from review.models import EventRuling, ItemEvent
from review.statistics.agreement.pair import compare
from tests.factories import (
    make_answer_set,
    make_project,
    make_question_set,
    make_scored_run,
    make_user,
    question_spec,
)
from tests.review.builders import answer_rows, assignment_of, queue_for, rate

pytestmark = pytest.mark.django_db

PASSAGE = "Whoever is ill for more than three days hands in a certificate of a physician within the week."


def browser(role: Role, project: Project) -> Client:
    client = Client()
    client.force_login(make_user(role, project))
    return client


def _set() -> QuestionSet:
    project = make_project()
    texts = {
        1: "How many days of leave does a new employee have in the first year?",
        2: "How many days of leave does a new employee have in a first year?",
        3: "Is paid who hands in a certificate of a physician within the week?",
        4: "What does this passage say about the library?",
        5: "Who pays?",
    }
    specs = [question_spec(n, text=text, category="single_hop", keywords=((f"key{n}",),)) for n, text in texts.items()]
    specs[2] = specs[2].model_copy(update={"ground_truth_chunk_ids": ("p1", "unknown")})
    specs[4] = specs[4].model_copy(update={"references": ("The employer.", "휴가 중에는 아무도 내지 않는다.")})
    return make_question_set(project, specs=specs)


@pytest.fixture(autouse=True)
def passages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feature that has one passage."""
    feature = Feature("passages", passages=lambda project, ids: {id_: PASSAGE for id_ in ids if id_ == "p1"})
    monkeypatch.setitem(REGISTRY, feature.name, lambda: feature)


def test_duplicates_leaks_and_divergent_references_are_found() -> None:
    quality = set_quality(_set())
    assert [(pair.first.id, pair.second.id) for pair in quality.duplicates] == [("q1", "q2")]
    assert 0.7 <= quality.duplicates[0].share < 1
    assert [spec.id for spec, _ in quality.leaks] == ["q3", "q4"]
    assert [words for _, words in quality.leaks][1] == "this passage"
    assert ([spec.id for spec, _ in quality.divergent_references], quality.referenced) == (["q5"], 1)
    assert quality.difficulties == ()


def test_difficulty_counts_systems_that_answer_a_question_correctly(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "django_q"  # no worker listens: the test drains
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in (1, 2, 3)])
    correct_texts, wrong_texts = ["The capital is city 1.", "city 2", "none"], ["no", "It is city 2.", "none"]
    for texts in (correct_texts, wrong_texts):
        run = prepare_run(
            make_answer_set(questions, texts=texts), profile_row(questions.project, "graphrag"), judge=None
        )
        start(run)
        drain(run.pk, seconds=60)
    quality = set_quality(questions)
    solved = {row.question.id: (row.metric, row.solved_by, row.systems) for row in quality.difficulties}
    assert solved == {"q1": ("keyword_hit", 1, 2), "q2": ("keyword_hit", 2, 2), "q3": ("keyword_hit", 0, 2)}
    assert ([row.question.id for row in quality.unsolved], [row.question.id for row in quality.always_solved]) == (
        ["q3"],
        ["q2"],
    )
    assert quality.discriminating == 1
    assert isinstance(quality.unsolved[0], Difficulty)


def test_experts_ratings_review_the_expected_answers() -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=4)))
    reviewers = [make_user(Role.REVIEWER, run.project) for _ in range(3)]
    correctness, faithfulness = (MetricDefinition.objects.get(name=name) for name in ("correctness", "faithfulness"))
    queue = queue_for(run, [correctness, faithfulness], reviewers)
    values_by_question = {1: (5, 5, 4), 2: (1, 5, 2), 3: (2,), 4: ()}  # by question
    for answer, values in zip(answer_rows(run), values_by_question.values(), strict=True):
        for person, value in zip(reviewers, values, strict=False):
            rate(assignment_of(queue, answer, person, run), correctness, value)
            rate(assignment_of(queue, answer, person, run), faithfulness, 1)  # which knows no expected answer
    first, second, third, fourth = answer_rows(run)
    rate(assignment_of(queue, first, reviewers[0], run), correctness, 3, phase="final", reason_code="reference_wrong")
    for answer, upheld in ((first, False), (second, True), (third, None), (fourth, None)):
        event = ItemEvent.objects.create(
            assignment=assignment_of(queue, answer, reviewers[1], run), verb="flag", kind="bad_reference"
        )
        if upheld is not None:
            EventRuling.objects.create(event=event, seq=1, upheld=upheld, reason="seen", by=reviewers[2])
    review = set_quality(run.answer_set.question_set).reference_review
    doubts = {row.question.id: (row.rejections, row.experts, row.upheld) for row in review.doubted}
    assert doubts == {"q2": (1, 3, True), "q1": (1, 3, False), "q3": (1, 2, False), "q4": (1, 1, False)}
    assert review.doubted[0].question.id == "q2"
    assert review.rated == 4
    (agreed,) = review.agreements
    assert (agreed.title["en"], agreed.answers, agreed.statistic) == ("Correctness", 2, "cohen_kappa_quadratic")
    pairs = ([5, 1], [5, 5]), ([5, 1], [4, 2]), ([5, 5], [4, 2])  # each two of the three, over both answers
    kappas = [compare(*pair, correctness.read_scale()).to_dict()["cohen_kappa_quadratic"] for pair in pairs]
    assert agreed.value == pytest.approx(sum(kappa or 0 for kappa in kappas) / 3)
    assert [(question.id, gap) for question, gap in review.expert_gaps] == [("q2", 1.0)]
    page = browser(Role.VIEWER, run.project).get(reverse("set-quality", args=[run.answer_set.question_set_id]))
    text = " ".join(page.content.decode().split())
    assert "for 4 questions and called 4 of the expected answers wrong" in text
    assert "upheld" in text


def test_page_shows_leaks_and_missing_difficulty() -> None:
    questions = _set()
    page = browser(Role.VIEWER, questions.project).get(reverse("set-quality", args=[questions.pk])).content.decode()
    assert "this passage" in page
    assert "Available once two or more systems have answered." in page
