"""Custom criteria: metrics defined in words and scored by a judge. Draft, try, activate.

Public: ``services.draft_version``, ``activate``, ``deactivate``, ``active_criteria`` and ``try_out``."""
