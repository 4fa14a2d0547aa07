"""Custom criteria: metrics that a team defines in words and a judge scores. Drafting, trying out, activating.

Used by others: ``services.draft``, ``activate``, ``deactivate``, ``active`` and ``try_out``.
"""
