"""Releases of one system over forty questions, of which a test states what changed and what was rated.

The overall score is the mean correctness, divided by 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.core.canonical import content_hash
from evaluation.models import AnswerSet, Run, SystemVersion, User
from review.evidence.effective import standing_answers
from review.models import ReviewQueue
from tests.factories import make_answer, make_answer_set, make_judge, make_profile
from tests.review.builders import answer_rows, answers_to, assignment_of, draw_into, metric, queue_for, rate, run_over
from tests.review.sampled import fill

QUESTIONS = 40
JUDGED = [5, 5, 3, 3] * 10


class Releases:
    """A system with its releases; each answers "VERSION answer AT", and is judged as :data:`JUDGED`."""

    def __init__(self, reviewer: User) -> None:
        self.reviewer = reviewer
        self.questions = answers_to(["a"] * QUESTIONS).question_set
        self.judge = make_judge(self.questions.project, "judge")
        part = {"metric": "correctness", "weight": 1.0}
        spec = {"name": "own", "title": {"en": "Own", "ko": "자체"}, "parts": [part]}
        self.profile = make_profile(self.questions.project, spec)
        self.texts = [f"answer {at}" for at in range(QUESTIONS)]
        self.runs: list[Run] = []

    def release(self, changed: Sequence[int] = (), judged: Sequence[float] = JUDGED) -> Run:
        """Release a version that answers the questions at these positions differently."""
        number = len(self.runs) + 1
        for at in changed:
            self.texts[at] = f"answer {at} of release {number}"
        run = fill(run_over(self._answers(), judge=self.judge, profile=self.profile), judged)
        self.runs.append(run)
        return run

    def _answers(self) -> AnswerSet:
        if not self.runs:
            return make_answer_set(self.questions, "rag", self.texts)
        system, number = self.runs[0].answer_set.system_version.system, len(self.runs) + 1
        version = SystemVersion.objects.create(system=system, version=number, content_hash=content_hash(number))
        answers = AnswerSet.objects.create(
            project=self.questions.project, question_set=self.questions, system_version=version
        )
        for question, text in zip(self.questions.questions.order_by("position"), self.texts, strict=True):
            make_answer(answers, question, text)
        return answers

    def rate(self, run: Run, ratings: Mapping[int, float], probability: float | None = 0.5) -> None:
        """Draw the answers at these positions with this probability among those without a standing rating, and rate
        them for correctness."""
        rows, standing = answer_rows(run), standing_answers(run, [metric("correctness").pk])[metric("correctness").pk]
        queue = queue_for(run, [metric("correctness")], [self.reviewer])
        members = [
            ("standing", 1.0, False) if answer.pk in standing else ("all", probability, at in ratings)
            for at, answer in enumerate(rows)
        ]
        draw_into(queue, run, members)
        self.rate_in(queue, run, ratings)

    def recheck(self, run: Run, ratings: Mapping[int, float]) -> None:
        """Rate the answers at these positions again."""
        self.rate_in(queue_for(run, [metric("correctness")], [self.reviewer]), run, ratings)

    def rate_in(self, queue: ReviewQueue, run: Run, ratings: Mapping[int, float]) -> None:
        rows = answer_rows(run)
        for at, value in ratings.items():
            rate(assignment_of(queue, rows[at], self.reviewer, run), metric("correctness"), value)
