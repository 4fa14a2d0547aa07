"""The back office: who may enter it, and which tables may appear in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.access import roles_anywhere
from evaluation.core.roles import STAFF_ROLES

#: Only our own tables. A scheduled function of the queue's tables would be any importable code, and its results are
#: unpickled when looked at; groups mean nothing here, because rights come from roles.
SHOWN_APPS = frozenset({"evaluation", "review"})


class BackOfficeSite(AdminSite):
    """Django's admin, open to evaluators, leads and administrators of any project."""

    site_header = "Concord"
    site_title = "Concord"
    index_title = _("Back office")

    def has_permission(self, request: HttpRequest) -> bool:
        """Superusers, and holders of a staff role in some project."""
        return bool(roles_anywhere(request.user) & STAFF_ROLES)

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Register tables of ours; those of other apps stay out, whatever their own admin module asks for."""
        several = [model_or_iterable] if isinstance(model_or_iterable, type) else list(model_or_iterable)
        shown = [model for model in several if model._meta.app_label in SHOWN_APPS]
        if shown:
            super().register(shown, admin_class, **options)
