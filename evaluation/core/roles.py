"""Who may do what: the table of roles and actions, as data."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Role(StrEnum):
    """Roles are granted per project; one person may hold several."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    EVALUATOR = "evaluator"
    LEAD = "lead"
    ADMIN = "admin"


class Action(StrEnum):
    """What the roles differ in."""

    VIEW = "view"  # runs, reports, export
    EVALUATE = "evaluate"  # import; start, pause, cancel runs; draft rubrics, profiles, criteria
    ACTIVATE = "activate"  # put criteria in force and take them out
    MANAGE_REVIEW = "manage_review"  # draws, queues, assignments
    OVERRIDE = "override"
    ADJUDICATE = "adjudicate"
    RATE = "rate"
    ADMINISTER = "administer"  # endpoints, keys, users, roles, tokens, purge, audit


STAFF_ROLES = frozenset({Role.EVALUATOR, Role.LEAD, Role.ADMIN})
_LEADS = frozenset({Role.LEAD, Role.ADMIN})

ALLOWED: dict[Action, frozenset[Role]] = {
    Action.VIEW: frozenset(Role) - {Role.REVIEWER},
    Action.EVALUATE: STAFF_ROLES,
    Action.ACTIVATE: _LEADS,
    Action.MANAGE_REVIEW: _LEADS,
    Action.OVERRIDE: _LEADS,
    Action.ADJUDICATE: _LEADS,
    Action.RATE: frozenset(Role),  # anyone who is assigned; the assignment itself is checked by the queue
    Action.ADMINISTER: frozenset({Role.ADMIN}),
}


def allowed(roles: Collection[Role | str], action: Action) -> bool:
    """Whether any of the roles held in a project allows the action there."""
    return bool(ALLOWED[action] & {Role(role) for role in roles})
