"""A rated run with a gold set, in which every label is recognisable."""

from __future__ import annotations

from django.db.models import F

from evaluation.core.roles import Role
from evaluation.models import ImportedJudge, Project, Run
from evaluation.storage import append_only
from review.calibration.versions import freeze
from review.evidence.invalidation import invalidate_figures
from review.models import GoldSet, Rating, ReviewQueue
from tests.factories import make_answer_set, make_project, make_question_set, make_user, question_spec
from tests.review.builders import (
    answer_rows,
    assignment_of,
    decide,
    imported_rating,
    metric,
    queue_for,
    rate,
    run_over,
    score,
)

ANSWERS = 24


class World:
    """Answers scored by an imported judge and rated by two reviewers and an imported expert whose comments name the
    answer,
    with a gold set over them."""

    def __init__(self) -> None:
        self.project: Project = make_project()
        questions = make_question_set(self.project, [question_spec(n) for n in range(ANSWERS)])
        self.texts = [f"Answer number {n}" for n in range(ANSWERS)]
        self.run = run_over(make_answer_set(questions, texts=self.texts), judged=False)
        self.metric = metric("quality", "real 0..1")
        self.rater = make_user(Role.REVIEWER, self.project)
        self.second = make_user(Role.REVIEWER, self.project)
        raters = [self.rater, self.second]
        self.queue: ReviewQueue = queue_for(self.run, [self.metric], raters)
        for number, answer in enumerate(answer_rows(self.run)):
            score(self.run, answer, self.metric, 0.5 + number % 3 / 10, author="judge")
            for rater in raters:
                rating = rate(assignment_of(self.queue, answer, rater, self.run), self.metric, value_of(number))
                assert rating.comment == ""
            imported_rating(answer, self.metric, "expert", value_of(number), comment=comment_of(number))
        ImportedJudge.objects.create(run=self.run, metric=self.metric, author="judge")
        Run.objects.filter(pk=self.run.pk).update(state=Run.State.COMPLETED)
        self.run.refresh_from_db()
        self.gold: GoldSet = freeze(self.run, "gold", by=None)
        holdout_answers = set(self.gold.items.filter(split="hold_out").values_list("answer", flat=True))
        self.locked = [n for n, answer in enumerate(answer_rows(self.run)) if answer.pk in holdout_answers]
        self.unlocked = [n for n in range(ANSWERS) if n not in self.locked]
        self.answers = dict(enumerate(answer_rows(self.run)))

    def labels_in(self, body: str) -> set[int]:
        """Numbers of the answers whose label appears in a text, by comment or value."""
        return {n for n in range(ANSWERS) if comment_of(n) in body or f"{value_of(n)}" in body}

    def change_locked_labels(self) -> None:
        """Rate and decide all locked answers differently."""
        for number in self.locked:
            imported_rating(self.answers[number], self.metric, "expert", 1.0 - value_of(number), comment="otherwise")
            imported_rating(self.answers[number], self.metric, "third", 0.0, comment="otherwise")
            decide(self.answers[number], self.metric, 1.0, "adjudication")

    def tamper_with_locked_labels(self) -> None:
        """Change only the stored ratings and comments of all locked answers."""
        answers = [self.answers[number].pk for number in self.locked]
        with append_only.suspended():
            rows = Rating.objects.filter(answer__in=answers)
            rows.update(value=1.0 - F("value"))
            rows.filter(reviewer=self.second).update(value=0.0)
            rows.filter(source="import").update(comment="otherwise")
        invalidate_figures(answers)


def value_of(number: int) -> float:
    return round(0.30617 + number / 100, 5)


def comment_of(number: int) -> str:
    return f"comment-on-{number}-here"
