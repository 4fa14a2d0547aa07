"""The people of the demo, with passwords set anew at each start."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from evaluation.core.roles import Role
from evaluation.models import Project, RoleGrant, User

PEOPLE = {
    "lead": ("김서연", Role.LEAD, "ko"),
    "reviewer1": ("이준호", Role.REVIEWER, "ko"),
    "reviewer2": ("Maya Lindqvist", Role.REVIEWER, "en"),
    "viewer": ("Tom Adeyemi", Role.VIEWER, "en"),
}


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A person to log in as."""

    username: str
    password: str
    role: Role


def set_people(project: Project) -> list[DemoUser]:
    """Make the demo's people where they are missing, and give each a new random password."""
    made = []
    for username, (name, role, language) in PEOPLE.items():
        user, _ = User.objects.get_or_create(username=username, defaults={"first_name": name, "language": language})
        password = secrets.token_urlsafe(9)
        user.set_password(password)
        user.save(update_fields=["password"])
        RoleGrant.objects.get_or_create(user=user, project=project, role=role)
        made.append(DemoUser(username, password, role))
    return made
