"""Version of the product, and refusal of databases that newer code has migrated.

``migrate`` adds the version to Django's table of applied migrations, as a migration of the made-up app ``concord``.
So code that is too old can name the version that the database needs."""

import functools
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

VERSIONS_APP = "concord"
OWN_PACKAGES = {"contrib", "evaluation", "review"}


class NewerDatabase(OperationalError):
    """The database has migrations that this code does not know."""


@functools.cache
def product_version() -> str:
    """Version of the checkout, else of the installed package."""
    # Imported here because the imports take 10 ms, and few processes need the version.
    import tomllib
    from importlib.metadata import version

    checkout = settings.BASE_DIR / "pyproject.toml"
    if checkout.is_file():
        return str(tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]["version"])
    return version("concord-eval")


def refuse_newer_database(connection: BaseDatabaseWrapper) -> None:
    """Close a connection to a database with unknown migrations. The database backends call it for each new one.

    Rows of apps that are not installed do not count: optional features can be removed.

    :raises NewerDatabase: with the version that migrated the database."""
    if connection.alias != DEFAULT_DB_ALIAS:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT app, name FROM django_migrations ORDER BY id")
            applied = cursor.fetchall()
    except DatabaseError:
        # A new database; if it cannot be read, the next statement reports it.
        return
    known = _known_migrations()
    unknown = [f"{app}.{name}" for app, name in applied if app in known and name not in known[app]]
    if not unknown:
        return
    connection.close()
    versions = [name for app, name in applied if app == VERSIONS_APP]
    raise NewerDatabase(
        f"Concord {versions[-1] if versions else 'of another version'} migrated the database. Concord "
        f"{product_version()} does not know {', '.join(unknown)}. Update Concord to the version of the database"
    )


def record_version(connection: BaseDatabaseWrapper) -> None:
    """Record that this version has migrated the database."""
    # Imported here because every process loads this module, and only `migrate` records.
    from django.db.migrations.recorder import MigrationRecorder

    recorder = MigrationRecorder(connection)
    if (VERSIONS_APP, product_version()) not in recorder.applied_migrations():
        recorder.record_applied(VERSIONS_APP, product_version())


@functools.cache
def _known_migrations() -> dict[str, set[str]]:
    """Names of the migrations of each own app, without importing them."""
    return {
        app.label: {file.stem for file in Path(app.path, "migrations").glob("*.py")}
        for app in apps.get_app_configs()
        if app.name.partition(".")[0] in OWN_PACKAGES
    }
