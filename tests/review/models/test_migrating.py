"""``migrate`` on databases without guards: it tells its plan, and puts them there."""

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
def left(unguarded: None) -> str:
    """The name of a migration that is not applied, in a database without guards."""
    (last,) = MigrationLoader(connection).graph.leaf_nodes("review")
    MigrationRecorder(connection).record_unapplied(*last)
    return ".".join(last)


def migrate(**options: bool) -> str:
    """What the command prints, run with the checks that it makes on a command line."""
    told = StringIO()
    call_command("migrate", stdout=told, skip_checks=False, **options)
    return told.getvalue()


def test_what_is_left_to_migrate_is_told_before_there_are_guards(left: str) -> None:
    assert left in migrate(plan=True)
    with pytest.raises(SystemExit) as ended:
        migrate(check_unapplied=True)
    assert ended.value.code == 1
    assert guards.missing_guards()  # telling puts nothing there


@pytest.mark.parametrize("only_tells", ["plan", "check_unapplied"])
def test_a_guard_that_got_lost_is_named_where_no_migration_is_left(unguarded: None, only_tells: str) -> None:
    with pytest.raises(SystemCheckError, match=r"concord\.E005.* is missing"):
        migrate(**{only_tells: True})
    assert guards.missing_guards()


def test_migrate_puts_them_back_and_then_nothing_is_left_to_tell(unguarded: None) -> None:
    migrate()
    assert guards.missing_guards() == []
    assert "No planned migration operations" in migrate(plan=True)
    migrate(check_unapplied=True)  # exits with 1 where something is left
