"""Two runs over the same questions, of whose answers some changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluation.core.samples import QuestionSpec
from evaluation.models import Answer, Run, User
from review.evidence.rating_input import RatingInput
from review.models import ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from tests.factories import (
    make_answer_set,
    make_judge,
    make_profile,
    make_project,
    make_question_set,
)
from tests.review.builders import run_over, score_all

SPEC = {
    "name": "one",
    "title": {"en": "One part", "ko": "하나"},
    "normalise": "min_max",
    "parts": [{"metric": "correctness", "weight": 1.0}],
}


def make_releases(
    changed: int, unchanged: int, *, old: Sequence[float] = (3,), new: Sequence[float] = (3,)
) -> tuple[Run, Run]:
    """The old and the new run of one system under a profile of correctness (1 to 5) alone.

    The first ``changed`` answers differ. The judge gives ``old`` and ``new`` in turn to the answers of each run, and
    the old values to unchanged ones."""
    count = changed + unchanged
    specs = [QuestionSpec(id=f"q{n:03}", category="a", text=f"Question {n}?") for n in range(1, count + 1)]
    questions = make_question_set(make_project(), specs)
    profile, judge = make_profile(questions.project, SPEC), make_judge(questions.project, "judge")
    texts = [f"Answer {n}." for n in range(count)]
    old_values = [old[n % len(old)] for n in range(count)]
    new_values = [new[n % len(new)] if n < changed else old_values[n] for n in range(count)]
    runs = []
    for values, prefix in ((old_values, ""), (new_values, "New: ")):
        own_texts = [f"{prefix if n < changed else ''}{text}" for n, text in enumerate(texts)]
        answers = make_answer_set(questions, texts=own_texts)
        run = run_over(answers, profile=profile, judge=judge)
        score_all(run, {"correctness": values})
        runs.append(run)
    return runs[0], runs[1]


def rate_queue(queue: ReviewQueue, reviewer: User, opinion: Callable[[Answer], float], most: int = 10_000) -> list[int]:
    """Rate the reviewer's items by their opinion, and return the answers in the order in which they came."""
    answers = []
    while len(answers) < most and (assignment := next_assignment(queue, reviewer)):
        answer = assignment.item.answer
        rating = RatingInput(value=opinion(answer))
        submit(assignment, {"correctness": rating}, idempotency_key=f"{reviewer.pk}-{answer.pk}", by=reviewer)
        answers.append(answer.pk)
    return answers


def is_new(answer: Answer) -> bool:
    return answer.text.startswith("New: ")
