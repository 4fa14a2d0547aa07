"""The back office: who may enter it, and which tables may appear in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from config.back_office_page import GROUPS, back_office_page
from evaluation.accounts.access import roles_anywhere
from evaluation.core.roles import STAFF_ROLES

#: Only our own tables. A scheduled function of the queue's tables would be any importable code, and its results are
#: unpickled when looked at; groups mean nothing here, because rights come from roles.
OWN_TABLES = ("contrib.", "evaluation.", "review.")


class BackOfficeSite(AdminSite):
    """Django's admin, open to evaluators, leads and administrators of any project."""

    site_header = "Concord"
    site_title = "Concord"
    index_title = _("Back office")

    def has_permission(self, request: HttpRequest) -> bool:
        """Superusers, and holders of a staff role in some project."""
        return bool(roles_anywhere(request.user) & STAFF_ROLES)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The site's own page is the one door; whoever is logged in and comes back here may not enter."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """What is to be set up, what needs somebody and what people come for, before the tables."""
        return super().index(request, {"page": back_office_page(request.user), **(extra_context or {})})

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The site's own page, which keeps the rest of the account as well."""
        return redirect("account")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The tables by what they are about rather than by app, in the order in which they are needed."""
        found = super().get_app_list(request, app_label)
        if app_label is not None:
            return found
        shown = {model["object_name"]: model for app in found for model in app["models"]}
        groups = []
        for name, title, tables in GROUPS:
            models = [shown.pop(table) for table in tables if table in shown]
            if models:
                address = f"{reverse('admin:index', current_app=self.name)}#{name}"
                facts = {"app_label": name, "app_url": address, "has_module_perms": True}
                groups.append({"name": title, "models": models, **facts})
        if shown:  # of an app of the site's own
            groups.append({**found[-1], "models": list(shown.values())})
        return groups

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Register tables of ours; those of other apps stay out, whatever their own admin module asks for."""
        several = [model_or_iterable] if isinstance(model_or_iterable, type) else list(model_or_iterable)
        shown = [model for model in several if model.__module__.startswith(OWN_TABLES)]
        if shown:
            super().register(shown, admin_class, **options)
