"""``migrate`` on databases without guards: it tells its plan, and puts them there."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from evaluation.storage import guards

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
SQUASHED = ("evaluation", "0001_squashed_0031_all_tables_of_the_machines_half")


@pytest.fixture
def unguarded() -> None:
    """A database without guards."""
    guards.remove()
    assert guards.missing()


@pytest.fixture
def left(unguarded: None) -> str:
    """The migration that a database of an older version, without guards, has to go."""
    loader = MigrationLoader(connection)
    (last,) = loader.graph.leaf_nodes("review")
    if last in loader.replacements:
        last = loader.replacements[last].replaces[-1]
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
    assert guards.missing()  # telling puts nothing there


@pytest.mark.parametrize("only_tells", ["plan", "check_unapplied"])
def test_a_guard_that_got_lost_is_named_where_no_migration_is_left(unguarded: None, only_tells: str) -> None:
    with pytest.raises(SystemCheckError, match=r"concord\.E005.* is missing"):
        migrate(**{only_tells: True})
    assert guards.missing()


def test_migrate_puts_them_back_and_then_nothing_is_left_to_tell(unguarded: None) -> None:
    migrate()
    assert guards.missing() == []
    assert "No planned migration operations" in migrate(plan=True)
    migrate(check_unapplied=True)  # exits with 1 where something is left


def early(*names: str) -> MigrationRecorder:
    """A database that says it has these early migrations of the machine's half, and none of those of today."""
    recorder = MigrationRecorder(connection)
    for name in [name for app, name in recorder.applied_migrations() if app == "evaluation"]:
        recorder.record_unapplied("evaluation", name)
    for name in names:
        recorder.record_applied("evaluation", name)
    return recorder


def test_a_database_from_before_the_first_migrations_were_joined_is_told_what_to_do() -> None:
    early("0001_tables_of_the_machines_half", "0002_places_of_quotes")
    with pytest.raises(CommandError, match="9c7b166"):
        migrate()
    assert not guards.missing()
