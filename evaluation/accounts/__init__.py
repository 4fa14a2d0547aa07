"""Who may do what: access to things of a project, tokens, sessions, log-in limits, the audit log.

Above ``models``.

Door: ``access.fetch`` (a thing, or 404 to strangers), ``access.may``, ``audit.record``, ``access.lock_project``,
``access.values_shown``.
"""
