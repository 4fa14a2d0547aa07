"""Systems, answer sets and runs: looked at here, driven from their pages."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from evaluation.admin.rights import ReadOnlyAdmin, RoleAdmin
from evaluation.core.roles import Action
from evaluation.models import AnswerSet, Run, RunEvent, System, SystemVersion


@admin.register(System)
class SystemAdmin(RoleAdmin):
    """Systems under test by name."""

    add = change = Action.EVALUATE
    list_display = ("name", "project", "created_at")
    list_filter = ("project",)
    search_fields = ("name",)

    def get_readonly_fields(self, request: object, obj: object = None) -> tuple[str, ...]:
        """A system stays in its project and keeps its name: answers refer to it."""
        return ("project", "name") if obj else ()


@admin.register(SystemVersion)
class SystemVersionAdmin(ReadOnlyAdmin):
    """Versions of systems."""

    path = "system__project_id"
    list_display = ("system", "version", "adapter", "created_at")
    list_select_related = ("system",)


@admin.register(AnswerSet)
class AnswerSetAdmin(ReadOnlyAdmin):
    """What systems answered, one asking a row."""

    list_display = ("question_set", "system_version", "evaluation_type", "k", "source", "created_at")
    list_filter = ("evaluation_type",)
    list_select_related = ("question_set", "system_version__system")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs with a link to their page, where they are started, paused and cancelled."""

    list_display = ("name_or_number", "state", "answer_set", "profile_version", "created_at", "page")
    list_filter = ("state", "project")
    search_fields = ("name",)
    ordering = ("-id",)
    list_select_related = ("answer_set__question_set", "answer_set__system_version__system", "profile_version")

    @admin.display(description=_("run"))
    def name_or_number(self, row: Run) -> str:
        """The run as pages call it."""
        return str(row)

    @admin.display(description=_("page"))
    def page(self, row: Run) -> SafeString:
        """The run's own page."""
        return format_html('<a href="{}">{}</a>', reverse("run", args=[row.pk]), _("Open"))


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    """What happened to runs."""

    path = "run__project_id"
    list_display = ("run", "verb", "reason", "created_at", "created_by")
    list_filter = ("verb",)
    list_select_related = (f"run__{Run.NAMED_BY}", "created_by")
