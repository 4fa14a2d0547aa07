"""Who may do what: access to things of a project, tokens, sessions, log-in limits, the audit log.

Above ``models``.

Door: ``access.fetch`` (a thing, or 404 to strangers), ``access.may``, ``audit.record``, ``lock_project``,
``exposure_hook.values_shown``.
"""
