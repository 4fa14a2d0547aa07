"""Invalidation of cached figures. Call these inside the transaction that changes the figures' inputs."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Min

from evaluation.models import Answer, Project, Run
from evaluation.storage.statements import insert_rows
from review.models import PendingInvalidation


def invalidate_figures(answer_ids: Collection[int]) -> None:
    """Invalidate the figures of these answers after a change of ratings, decisions, rulings, draws or pending ratings.

    One statement. For answers to one question set, a single answer is enough."""
    if answer_ids:
        insert_rows([PendingInvalidation(answer_id=pk) for pk in answer_ids])


def invalidate_project_figures(project: Project) -> None:
    """Invalidate the figures of all runs of a project, because other labels are sealed. Two statements."""
    rows = Answer.objects.filter(answer_set__project=project).values("answer_set__question_set").order_by()
    invalidate_figures(list(rows.annotate(first=Min("pk")).values_list("first", flat=True)))


def invalidate_run_figures(run: Run) -> None:
    """Invalidate the figures of a whole run after an import of scores or an accepted assumption. Two statements."""
    invalidate_figures(list(run.answer_set.answers.values_list("pk", flat=True)[:1]))
