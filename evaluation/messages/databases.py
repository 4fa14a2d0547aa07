"""Messages about an unusable database and about backups."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

REFUSALS = {
    "database_read_only": _(
        "The database can only be read at present: nothing was saved, and nothing was lost. An operator makes it "
        "writable again; runs then go on where they were."
    ),
    "database_full": _(
        "The disk of the database is full: nothing was saved, and what was saved before is safe. An operator frees "
        "space; runs then go on where they were."
    ),
    "database_locked": _(
        "The database was busy for too long, so this was not done. Try again; if it stays so, an operator looks what "
        "holds it (healthcheck)."
    ),
    "database_away": _(
        "The database cannot be reached, or takes no more connections. What was saved is safe; try again in a while."
    ),
    "database_replaced": _(
        "The file of the database was deleted or replaced while it was in use: nothing was saved. An operator stops "
        "the site, puts the right file in its place and starts the site again."
    ),
    "database_newer": _(
        "A newer version of Concord has changed the database, so this version does not use it: nothing was saved. An "
        "operator updates Concord."
    ),
    "port_in_use": _("Port %(port)s is in use. End what runs there, or name another one: PORT=8001."),
    "already_served": _("This database is already served by %(process)s. Stop that process first."),
    "database_damaged": _(
        "The database cannot be read or written at present: its disk fails or is full, or its file is damaged. An "
        "operator looks at it; what was saved may have to be restored from a backup."
    ),
    "backup_exists": _("There is a file %(file)s already. Choose another name; nothing is overwritten."),
    "backup_damaged": _("%(file)s is damaged: what it holds is not what was written. Take another one."),
    "backup_foreign": _("The database in %(file)s is not the one that its manifest describes."),
    "backup_unreadable": _("%(file)s is no backup that can be read (%(error)s)."),
    "backup_other_engine": _(
        "The backup is of a %(theirs)s database, and DATABASE_URL names a %(ours)s one. Restore it into its own kind."
    ),
    "backup_newer": _("The backup was made by newer code than this (%(apps)s). Update Concord first."),
    "restore_not_empty": _(
        "A backup is restored into an empty place only, and there is something already: %(place)s. Move it away, or "
        "name another place in DATABASE_URL."
    ),
    "tools_missing": _(
        "pg_dump and pg_restore of PostgreSQL %(version)s are needed, the version of the server; present: %(present)s. "
        "Install the package postgresql-client-%(version)s."
    ),
    "tool_failed": _("%(tool)s failed: %(error)s"),
}
