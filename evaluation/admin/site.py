"""The back office: who may enter it, and the base of its pages."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.roles import STAFF_ROLES


class BackOfficeSite(AdminSite):
    """Django's admin, open to evaluators, leads and administrators of any project."""

    site_header = "Concord"
    site_title = "Concord"
    index_title = _("Back office")

    def has_permission(self, request: HttpRequest) -> bool:
        """Superusers, and holders of a staff role in some project."""
        user = request.user
        if not user.is_active or user.is_anonymous:
            return False
        return user.is_superuser or user.grants.filter(role__in=STAFF_ROLES).exists()
