"""Messages about an unusable database and about backups."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "database_read_only": _(
        "The database is read-only at the moment. Nothing was saved or lost. Ask an operator to make "
        "it writable. Runs then continue where they stopped."
    ),
    "database_full": _(
        "The database disk is full. Nothing was saved, but earlier data is safe. Ask an operator to "
        "free space. Runs then continue where they stopped."
    ),
    "database_locked": _(
        "The database was busy for too long, so this was not done. Try again. If this persists, ask an "
        "operator to check what locks it (healthcheck)."
    ),
    "database_away": _(
        "The database can't be reached, or accepts no more connections. Saved data is safe. Try again later."
    ),
    "database_replaced": _(
        "The database file was deleted or replaced while in use. Nothing was saved. Ask an operator to "
        "stop the site, restore the right file and start the site again."
    ),
    "database_newer": _(
        "A newer version of Concord changed the database, so this version can't use it. Nothing was "
        "saved. Ask an operator to update Concord."
    ),
    "port_in_use": _("Port %(port)s is in use. Stop the program that uses it, or choose another port: PORT=8001."),
    "already_served": _("This database is already served by %(process)s. Stop that process first."),
    "database_damaged": _(
        "The database can't be read or written. Its disk is failing or full, or its file is damaged. "
        "Ask an operator to check it. Data may have to be restored from a backup."
    ),
    "backup_exists": _("The file %(file)s already exists and won't be overwritten. Choose another name."),
    "backup_damaged": _("%(file)s is damaged: its content isn't what was written. Use another backup."),
    "backup_foreign": _("The database in %(file)s doesn't match its manifest."),
    "backup_unreadable": _("%(file)s isn't a readable backup (%(error)s)."),
    "backup_other_engine": _(
        "The backup is of a %(theirs)s database, but DATABASE_URL is %(ours)s. Restore it to the same type of database."
    ),
    "backup_newer": _("The backup was made by a newer version of Concord (%(apps)s). Update Concord first."),
    "restore_not_empty": _(
        "A backup can only be restored to an empty location. Already there: %(place)s. Move it away, "
        "or set another location in DATABASE_URL."
    ),
    "tools_missing": _(
        "pg_dump and pg_restore of PostgreSQL %(version)s are required, the server's version. Found: "
        "%(present)s. Install the package postgresql-client-%(version)s."
    ),
    "tool_failed": _("%(tool)s failed: %(error)s"),
}
