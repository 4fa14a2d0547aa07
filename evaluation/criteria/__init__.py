"""Criteria that a team writes itself: drafting, trying out, activating; each is a judge metric of the project.

Above ``judges``.

Door: ``services.draft``, ``activate`` and ``deactivate``; ``services.active``; ``services.try_out``.
"""
