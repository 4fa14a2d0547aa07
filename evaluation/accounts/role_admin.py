"""Rights in the back office: those of the person's roles in the row's project, nothing else."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from evaluation.accounts import access, audit
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.messages.sentences import explain_reason, explain_refusal
from evaluation.models import JudgeVersion, Project, User
from evaluation.scoring.aside import asked_once


class RoleAdmin(ModelAdmin):
    """The base of every table of the back office.

    ``path`` leads from a row to its project (empty for tables of the whole site). ``view``, ``add`` and ``change`` are
    the actions a role must allow, ``None`` for nobody. Nothing is ever deleted here.
    """

    path = "project_id"
    view: Action = Action.EVALUATE
    add: Action | None = None
    change: Action | None = None
    site_page = ""  # name of the address of a row's page on the site, where it has one
    list_per_page = 50
    show_full_result_count = False

    def view_on_site(self, obj: Any) -> str | None:
        """The row's page on the site, which the back office links to."""
        return reverse(self.site_page, args=[obj.pk]) if self.site_page else None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows of the projects in which the person may look at the table."""
        rows = super().get_queryset(request)
        return access.visible(rows, request.user, self.view, path=self.path) if self.path else rows

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the table is listed."""
        return self._may(request, self.view)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether the table, or the row, may be looked at."""
        return self._may(request, self.view, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whether a row may be added in some project."""
        return self.add is not None and self._may(request, self.add)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether rows, or this row, may be changed."""
        return self.change is not None and self._may(request, self.change, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes: ``purge`` is the only door."""
        return False

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        """A project can only be one in which the person may add the row."""
        if db_field.related_model is Project:
            kwargs["queryset"] = access.projects_with(request.user, self.add or self.change or self.view)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        """Save, and say so in the audit log: which fields, never their values."""
        super().save_model(request, obj, form, change)
        self.note(request, "admin.changed" if change else "admin.added", obj, fields=sorted(form.changed_data))

    def note(self, request: HttpRequest, verb: str, obj: Model, **detail: Any) -> None:
        """An entry in the audit log."""
        audit.record(request.user if isinstance(request.user, User) else None, verb, obj, **detail)

    def _may(self, request: HttpRequest, action: Action, obj: Model | None = None) -> bool:
        if obj is None or not self.path:
            # The list of tables beside every page asks for each of them.
            rights: dict[Action, bool] = vars(request).setdefault("back_office_rights", {})
            if action not in rights:
                rights[action] = access.projects_with(request.user, action).exists()
            return rights[action]
        rows = type(obj)._default_manager.filter(pk=obj.pk)
        return access.visible(rows, request.user, action, path=self.path).exists()


TRY_SECONDS = 10.0  # until the endpoint has a place for somebody who waits
LONGEST_SAID = 1_000  # characters of a reply in a message


class TriedAdmin(RoleAdmin):
    """A form with the button "Save and try": the calls that begin every run are made, and what came back is told."""

    def judge_of(self, obj: Any, form: Any) -> JudgeVersion | None:
        """Whom to ask; ``None`` where nobody can be."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        """Save, and remember what was saved."""
        super().save_model(request, obj, form, change)
        vars(request)["saved"] = (obj, self.judge_of(obj, form) if TRY in request.POST else None)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; what is tried is tried after the transaction that saved, which a call would make last."""
        response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        if TRY not in request.POST or "saved" not in vars(request):
            return response
        obj, judge = vars(request)["saved"]
        _tell(request, judge)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", obj.pk)


TRY = "_try"  # the button


def _tell(request: HttpRequest, judge: JudgeVersion | None) -> None:
    if judge is None or judge.endpoint is None:
        messages.error(request, gettext("Say which model is to be asked."))
        return
    try:
        tried = asked_once(judge, judge.endpoint, TRY_SECONDS)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return
    last, good = tried.last, tried.outcome == "ok"
    answers = gettext("The model answers: %(model)s.") % {"model": last.model_returned or judge.model}
    said = [answers if good else explain_reason(tried.reason)]
    said += [gettext("It said: %(reply)s") % {"reply": last.raw[:LONGEST_SAID]}] if last.raw else []
    (messages.success if good else messages.error)(request, " ".join(said))


class ReadOnlyAdmin(RoleAdmin):
    """A table whose rows are only ever made by the product itself."""
