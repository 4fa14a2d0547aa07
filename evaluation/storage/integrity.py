"""Comparison of the database's triggers with those that this code installs: text, functions and state."""

from django.db import connection, transaction

from evaluation.storage import append_only, guards

_TRIGGER_QUERIES = {
    "postgresql": """
        SELECT t.tgname || ' on ' || c.relname, concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled, p.prosrc)
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace""",
    "sqlite": "SELECT name || ' on ' || tbl_name, sql FROM sqlite_master WHERE type = 'trigger'",
}


def altered_triggers() -> dict[str, str]:
    """Return differing triggers: name -> ``missing``, ``changed`` or ``unknown``.

    ``changed`` means another body or table, disabled, or fired for replicas only; ``unknown`` means not part of the
    product. The expected triggers are created in a transaction that is rolled back, so the database role must own the
    tables."""
    with transaction.atomic():
        current = _definitions()
        append_only.uninstall()
        guards.remove()
        foreign = _definitions()
        append_only.install()
        guards.install()
        expected = _definitions()
        transaction.set_rollback(True)
    differences = {
        name: "missing" if name not in current else "changed"
        for name in expected
        if current.get(name) != expected[name]
    }
    return differences | {name: "unknown" for name in foreign if foreign[name] == expected.get(name)}


def _definitions() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(_TRIGGER_QUERIES[connection.vendor])
        return {str(name): str(text) for name, text in cursor.fetchall()}
