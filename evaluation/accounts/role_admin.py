"""Back-office permissions, which follow the person's roles in a row's project."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin import FieldListFilter, ModelAdmin, RelatedFieldListFilter
from django.db.models import Field, ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from evaluation.accounts import access, audit
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages.explanations import explain_reason, explain_refusal
from evaluation.models import JudgeVersion, Project, User
from evaluation.scoring.adhoc import try_judge


class ProjectFilter(RelatedFieldListFilter):
    """Filter of a list by project. It names only the projects whose rows the person may see."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        projects = access.projects_with(request.user, model_admin.view_action)
        ordering = self.field_admin_ordering(field, request, model_admin)
        return field.get_choices(
            include_blank=False, ordering=ordering, limit_choices_to={"pk__in": projects.values("pk")}
        )


def _is_project(field: Field[Any, Any]) -> bool:
    return field.related_model is Project


FieldListFilter.register(_is_project, ProjectFilter, take_priority=True)


class RoleAdmin(ModelAdmin):
    """Base class of every table of the back office.

    ``path`` is the lookup from a row to its project, empty for tables of the whole site. ``view_action``,
    ``add_action`` and ``change_action`` are the actions that a person's role must allow, ``None`` to forbid it to all.
    Rows are never deleted here."""

    path = "project_id"
    view_action: Action = Action.EVALUATE
    add_action: Action | None = None
    change_action: Action | None = None
    # URL name of a row's page on the site, if it has one.
    site_url_name = ""
    list_per_page = 50
    show_full_result_count = False

    def view_on_site(self, obj: Any) -> str | None:
        return reverse(self.site_url_name, args=[obj.pk]) if self.site_url_name else None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return access.visible(rows, request.user, self.view_action, path=self.path) if self.path else rows

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Filter by no field that is not a column of the list: the value of another one, such as a password's hash,
        could be guessed piece by piece."""
        columns = {str(name).partition("__")[0] for name in (*self.list_display, *self.list_filter)}
        hidden = {field.name for field in self.opts.get_fields()} - columns
        return lookup.partition("__")[0] not in hidden and bool(super().lookup_allowed(lookup, value, request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may(request, self.view_action)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self._may(request, self.view_action, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.add_action is not None and self._may(request, self.add_action)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.change_action is not None and self._may(request, self.change_action, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Forbid deletion; only ``purge`` deletes."""
        return False

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        """Offer only projects in which the person may add the row; a single one is preselected."""
        if db_field.related_model is Project:
            projects = access.projects_with(request.user, self.add_action or self.change_action or self.view_action)
            kwargs["queryset"] = projects
            if len(first_projects := projects[:2]) == 1:
                kwargs["initial"] = first_projects[0].pk
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        """Save and record the names of the changed fields in the audit log, never their values."""
        super().save_model(request, obj, form, change)
        self.record_event(request, "admin.changed" if change else "admin.added", obj, fields=sorted(form.changed_data))

    def record_event(self, request: HttpRequest, verb: str, obj: Model, **detail: Any) -> None:
        audit.record(request.user if isinstance(request.user, User) else None, verb, obj, **detail)

    def _may(self, request: HttpRequest, action: Action, obj: Model | None = None) -> bool:
        if obj is None or not self.path:
            # Cached for the request: every page lists the tables and checks each of them.
            rights: dict[Action, bool] = vars(request).setdefault("back_office_rights", {})
            if action not in rights:
                rights[action] = access.projects_with(request.user, action).exists()
            return rights[action]
        rows = type(obj)._default_manager.filter(pk=obj.pk)
        return access.visible(rows, request.user, action, path=self.path).exists()


# Length of a reply in a message.
MAX_REPLY_CHARS = 1_000


class SaveAndTryAdmin(RoleAdmin):
    """A form with the button "Save and try", which makes the preflight calls of a run and reports the reply."""

    def get_judge(self, obj: Any, form: Any) -> JudgeVersion | None:
        """Return the judge to try, or ``None`` without one."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        """Save, and remember the row for the probe."""
        super().save_model(request, obj, form, change)
        vars(request)["saved"] = (obj, self.get_judge(obj, form) if TRY in request.POST else None)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Call the judge after the saving transaction has ended, which the calls would prolong."""
        response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        if TRY not in request.POST or "saved" not in vars(request):
            return response
        obj, judge = vars(request)["saved"]
        _report_probe(request, judge)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", obj.pk)


# Name of the button.
TRY = "_try"


def _report_probe(request: HttpRequest, judge: JudgeVersion | None) -> None:
    if judge is None or judge.endpoint is None:
        messages.error(request, gettext("Enter the model to test."))
        return
    try:
        probe = try_judge(judge, judge.endpoint)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return
    reply, succeeded = probe.last, probe.outcome == "ok"
    verdict = gettext("The model responded: %(model)s.") % {"model": reply.model_returned or judge.model}
    sentences = [verdict if succeeded else explain_reason(probe.reason)]
    sentences += [gettext("Reply: %(reply)s") % {"reply": reply.raw[:MAX_REPLY_CHARS]}] if reply.raw else []
    (messages.success if succeeded else messages.error)(request, " ".join(sentences))


class ReadOnlyAdmin(RoleAdmin):
    """A table whose rows only the application creates."""
