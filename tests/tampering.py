"""Changes of rows by SQL, behind the triggers, and the flaws that the audit finds then."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.db import connection, transaction

from evaluation.accounts import audit
from evaluation.storage import append_only, guards, integrity


def execute(statement: str) -> None:
    """Run one statement without triggers, which are there again afterwards."""
    check_foreign_keys()
    with connection.cursor() as cursor, append_only.suspended():
        guards.remove()
        cursor.execute(statement)
        assert cursor.rowcount == 1, statement
        guards.install()


def check_foreign_keys() -> None:
    """Check keys at once: PostgreSQL changes no trigger of a table with pending checks."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def flaw_codes() -> set[str]:
    return {flaw.code for flaw in audit.flaws()}


def flaws_of_changes(statements: Mapping[str, str]) -> dict[str, set[str]]:
    """Codes of the flaws after each change of one row, which is undone afterwards."""
    check_foreign_keys()
    codes = {}
    with pytest.MonkeyPatch.context() as patch, append_only.suspended():
        guards.remove()
        # The triggers are away during all of these changes.
        patch.setattr(integrity, "altered_triggers", dict)
        for name, statement in statements.items():
            savepoint = transaction.savepoint()
            with connection.cursor() as cursor:
                cursor.execute(statement)
                assert cursor.rowcount == 1, statement
            codes[name] = flaw_codes()
            transaction.savepoint_rollback(savepoint)
        guards.install()
    return codes
