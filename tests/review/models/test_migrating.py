"""``migrate`` on databases without guards: prints its plan and installs the guards."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from evaluation.storage import guards

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def unguarded() -> None:
    """A database without guards."""
    guards.remove()
    assert guards.missing_guards()


@pytest.fixture
def unapplied_migration(unguarded: None) -> str:
    """Name of an unapplied migration, in a database without guards."""
    (last,) = MigrationLoader(connection).graph.leaf_nodes("review")
    MigrationRecorder(connection).record_unapplied(*last)
    return ".".join(last)


def migrate(**options: bool) -> str:
    """Output of the command, run with the checks of the command line."""
    output = StringIO()
    call_command("migrate", stdout=output, skip_checks=False, **options)
    return output.getvalue()


def test_plan_is_printed_before_guards_exist(unapplied_migration: str) -> None:
    assert unapplied_migration in migrate(plan=True)
    with pytest.raises(SystemExit) as error:
        migrate(check_unapplied=True)
    assert error.value.code == 1
    assert guards.missing_guards()  # telling puts nothing there


@pytest.mark.parametrize("option", ["plan", "check_unapplied"])
def test_missing_guard_is_named_when_no_migration_is_left(unguarded: None, option: str) -> None:
    with pytest.raises(SystemCheckError, match=r"concord\.E005.* is missing"):
        migrate(**{option: True})
    assert guards.missing_guards()


def test_migrate_installs_guards_and_then_reports_nothing(unguarded: None) -> None:
    migrate()
    assert guards.missing_guards() == []
    assert "No planned migration operations" in migrate(plan=True)
    migrate(check_unapplied=True)  # exits with 1 where something is left
