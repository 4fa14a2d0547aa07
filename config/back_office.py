"""Back office: access, and the tables that may appear in it."""

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

# Module prefixes of the tables that the back office shows. It leaves out those of other apps: with the task queue's
# tables, a user could schedule any importable code or unpickle results. Permission groups have no effect here, because
# rights come from roles.
OWN_MODULE_PREFIXES = ("contrib.", "evaluation.", "review.")


class BackOfficeSite(AdminSite):
    """Django's admin, open to evaluators, leads and administrators of any project."""

    site_header = "Concord"
    site_title = "Concord"
    index_title = _("Back office")

    def has_permission(self, request: HttpRequest) -> bool:
        """Allow superusers, and holders of a staff role in some project."""
        return bool(roles_anywhere(request.user) & STAFF_ROLES)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the site's login page; refuse a user who is logged in but has no access."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show setup steps, runs that need attention and tasks above the tables."""
        return super().index(request, {"page": back_office_page(request.user), **(extra_context or {})})

    def password_change(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the account page, which has the password form."""
        return redirect("account")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Group tables by subject instead of by app."""
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        models_by_name = {model["object_name"]: model for app in apps for model in app["models"]}
        groups = []
        for name, title, model_names in GROUPS:
            models = [models_by_name.pop(model_name) for model_name in model_names if model_name in models_by_name]
            if models:
                address = f"{reverse('admin:index', current_app=self.name)}#{name}"
                app_fields = {"app_label": name, "app_url": address, "has_module_perms": True}
                groups.append({"name": title, "models": models, **app_fields})
        # The last group lists tables that an installation added.
        if models_by_name:
            groups.append({**apps[-1], "models": list(models_by_name.values())})
        return groups

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Register tables of this project only; ignore those of other apps."""
        models = [model_or_iterable] if isinstance(model_or_iterable, type) else list(model_or_iterable)
        own_models = [model for model in models if model.__module__.startswith(OWN_MODULE_PREFIXES)]
        if own_models:
            super().register(own_models, admin_class, **options)
