"""What a person is on the site as a whole, over all projects: for navigation, never for authorisation of a row."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from evaluation.core.roles import Role
from evaluation.models import RoleGrant, User


def roles_anywhere(user: User | AnonymousUser) -> frozenset[str]:
    """The roles the person holds in any project; a superuser is an administrator."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return frozenset({Role.ADMIN})
    return frozenset(RoleGrant.objects.filter(user=user).values_list("role", flat=True).distinct())
