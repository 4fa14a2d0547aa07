"""People whom a request names."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.core.errors import UnknownName
from evaluation.models import RoleGrant, User


def people_named(names: Sequence[str], project_id: int) -> list[User]:
    """Members of the project by user name.

    :raises UnknownName: naming the near ones.
    """
    granted = RoleGrant.objects.filter(project=project_id).values("user")
    known = {user.get_username(): user for user in User.objects.filter(pk__in=granted, is_active=True)}
    if unknown := [name for name in names if name not in known]:
        raise UnknownName("reviewer", unknown[0], list(known))
    return [known[name] for name in names]
