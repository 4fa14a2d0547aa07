"""That kept figures are to be made anew: who changes what a figure rests on says so here, in the same transaction."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Min

from evaluation.models import Answer, Project, Run
from evaluation.storage.statements import insert
from review.models import Touched


def touch(answer_ids: Collection[int]) -> None:
    """Something changes about these answers: a rating, a decision, a ruling, a draw, whether one waits for a rating.
    One statement; of answers to one question set a single one will do."""
    if answer_ids:
        insert([Touched(answer_id=pk) for pk in answer_ids])


def touch_project(project: Project) -> None:
    """Mark the figures of all runs of a project stale: which labels are sealed changes. Two statements."""
    rows = Answer.objects.filter(answer_set__project=project).values("answer_set__question_set").order_by()
    touch(list(rows.annotate(first=Min("pk")).values_list("first", flat=True)))


def touch_run(run: Run) -> None:
    """The same of a run as a whole: scores came from elsewhere, or a lead accepted an assumption. Two statements."""
    touch(list(run.answer_set.answers.values_list("pk", flat=True)[:1]))
