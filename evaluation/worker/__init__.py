"""The ledger of work: units, leases, tries, rounds; the doorbell, the sweep, and the processes that work it off.

Above ``accounts``. Losing or repeating a message changes nothing: all truth is rows (``docs/decisions/0001``).

Door: ``lifecycle.RunConfig``, ``start``, ``pause`` and ``retry_failed``, ``units``, ``dispatch``,
``database.retry_on_db_error``, ``serving``.
"""
