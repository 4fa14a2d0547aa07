"""Migration operation that creates many tables."""

from __future__ import annotations

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateTables(Operation):
    """Apply several ``CreateModel`` operations and render the migration state once instead of after each.

    Migrating an empty SQLite database takes 4.6 s of CPU time instead of 15.9 s."""

    reversible = True

    def __init__(self, tables: list[CreateModel]) -> None:
        """Each table may refer to earlier ones only."""
        self.tables = tables

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the tables to the state without rendering its models."""
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
        for table in self.tables:
            table.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop the tables in reverse order."""
        for table in reversed(self.tables):
            table.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.tables)} tables"
