"""Taking turns: what must not be done twice at the same moment in a project."""

from __future__ import annotations

from evaluation.models import Project


def lock_project(project_id: int) -> None:
    """Wait until nobody else holds the project's turn; the transaction one is in gives it back at its end.

    On SQLite a writing transaction has the whole database to itself anyway.
    """
    Project.objects.select_for_update().get(pk=project_id)
