"""Whether the database's triggers are what this code installs: their text, their functions and their state."""

from django.db import connection, transaction

from evaluation.storage import append_only, guards

_TRIGGERS = {
    "postgresql": """
        SELECT t.tgname || ' on ' || c.relname, concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled, p.prosrc)
        FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace""",
    "sqlite": "SELECT name || ' on ' || tbl_name, sql FROM sqlite_master WHERE type = 'trigger'",
}


def altered() -> dict[str, str]:
    """Triggers that are not as they should be, by name: ``missing``, ``changed`` (another body or table, disabled, or
    fired for replicas alone) or ``unknown`` (not ours).

    The right ones are made anew within a transaction that is taken back, so the database's role has to own its tables.
    """
    with transaction.atomic():
        found = _definitions()
        append_only.uninstall()
        guards.remove()
        left = _definitions()
        append_only.install()
        guards.install()
        right = _definitions()
        transaction.set_rollback(True)
    told = {name: "missing" if name not in found else "changed" for name in right if found.get(name) != right[name]}
    return told | {name: "unknown" for name in left if left[name] == right.get(name)}


def _definitions() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(_TRIGGERS[connection.vendor])
        return {str(name): str(text) for name, text in cursor.fetchall()}
