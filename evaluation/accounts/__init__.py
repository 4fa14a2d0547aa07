"""People, roles, access to projects, tokens, log-in, the audit log.

Used by others: ``access.fetch`` (a row, or 404 for strangers), ``access.may``, ``access.lock_project``,
``audit.record``."""
