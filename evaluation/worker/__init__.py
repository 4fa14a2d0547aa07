"""Background work: units of work and their leases, attempts and replies, dispatch, workers, health, backups.

Losing or repeating a queue message changes nothing, since all state is in rows (``docs/decisions/0001``). Used by
others: ``lifecycle.start``, ``pause`` and ``retry_failed``, ``units``, ``jobs``, ``dispatch``, ``serving``."""
