"""Roles, actions and the table of permissions."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Role(StrEnum):
    """Role in a project; a user may hold several."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    EVALUATOR = "evaluator"
    LEAD = "lead"
    ADMIN = "admin"


class Action(StrEnum):
    """Action that requires a permission."""

    # View runs and reports, and export them.
    VIEW = "view"
    # Import; start, pause and cancel runs; draft rubrics, profiles and criteria.
    EVALUATE = "evaluate"
    # Activate and retire criteria.
    ACTIVATE = "activate"
    # Manage draws, queues and assignments.
    MANAGE_REVIEW = "manage_review"
    OVERRIDE = "override"
    ADJUDICATE = "adjudicate"
    RATE = "rate"
    # Manage endpoints, keys, users, roles and tokens; purge and audit.
    ADMINISTER = "administer"


STAFF_ROLES = frozenset({Role.EVALUATOR, Role.LEAD, Role.ADMIN})
_LEAD_ROLES = frozenset({Role.LEAD, Role.ADMIN})

ALLOWED: dict[Action, frozenset[Role]] = {
    Action.VIEW: frozenset(Role) - {Role.REVIEWER},
    Action.EVALUATE: STAFF_ROLES,
    Action.ACTIVATE: _LEAD_ROLES,
    Action.MANAGE_REVIEW: _LEAD_ROLES,
    Action.OVERRIDE: _LEAD_ROLES,
    Action.ADJUDICATE: _LEAD_ROLES,
    # Any role may rate; the queue checks the assignment.
    Action.RATE: frozenset(Role),
    Action.ADMINISTER: frozenset({Role.ADMIN}),
}


def is_allowed(roles: Collection[Role | str], action: Action) -> bool:
    """Return whether any of a user's roles in a project permits the action."""
    return bool(ALLOWED[action] & {Role(role) for role in roles})
