"""Admin of answer sets and runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_user
from evaluation.accounts.role_admin import ReadOnlyAdmin
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages.explanations import explain_refusal
from evaluation.models import AnswerSet, Run, RunEvent, User
from evaluation.runs.creation import resume_run
from evaluation.worker import lifecycle


@admin.register(AnswerSet)
class AnswerSetAdmin(ReadOnlyAdmin):
    """Answer sets. "Add" opens the page for new evaluations."""

    add_action = Action.EVALUATE
    list_display = ("question_set", "system_version", "evaluation_type", "k", "source", "created_at")
    list_filter = ("evaluation_type",)
    list_select_related = ("question_set", "system_version__system")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return redirect("evaluation-new")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs with a link to their page. "Add" opens the page for new evaluations; actions apply to the selected runs."""

    site_url_name = "run"
    add_action = Action.EVALUATE
    actions = ("start", "pause", "resume", "cancel", "retry")
    list_display = ("name_or_number", "state", "answer_set", "profile_version", "created_at", "page")
    list_filter = ("state", "project")
    search_fields = ("name",)
    ordering = ("-id",)
    list_select_related = ("answer_set__question_set", "answer_set__system_version__system", "profile_version")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        return redirect("evaluation-new")

    @admin.action(description=_("Start draft runs"), permissions=["steer"])
    def start(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._steer(request, runs, lifecycle.start)

    @admin.action(description=_("Pause"), permissions=["steer"])
    def pause(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._steer(request, runs, lifecycle.pause)

    @admin.action(description=_("Resume"), permissions=["steer"])
    def resume(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._steer(request, runs, resume_run)

    @admin.action(description=_("Cancel permanently"), permissions=["steer"])
    def cancel(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._steer(request, runs, lifecycle.cancel)

    @admin.action(description=_("Retry failed steps"), permissions=["steer"])
    def retry(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._steer(request, runs, lifecycle.retry_failed)

    def has_steer_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request)

    def _steer(self, request: HttpRequest, runs: QuerySet[Run], action: Callable[[Run, User], object]) -> None:
        """Apply the action to each run that the person may steer, and report the others."""
        steerable = access.visible(runs, request.user, Action.EVALUATE)
        for run in steerable:
            try:
                if not action(run, signed_in_user(request)):
                    text = gettext("%(run)s was in another state. Nothing was changed.") % {"run": run}
                    messages.warning(request, text)
            except DomainError as refusal:
                messages.error(request, f"{run}: {explain_refusal(refusal)}")
        if skipped := runs.count() - steerable.count():
            text = ngettext(
                "You don't have permission to control %(count)d run.",
                "You don't have permission to control %(count)d runs.",
                skipped,
            )
            messages.warning(request, text % {"count": skipped})

    @admin.display(description=_("run"))
    def name_or_number(self, row: Run) -> str:
        return str(row)

    @admin.display(description=_("page"))
    def page(self, row: Run) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("run", args=[row.pk]), _("Open"))


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    """Events of runs."""

    path = "run__project_id"
    list_display = ("run", "verb", "reason", "created_at", "created_by")
    list_filter = ("verb",)
    list_select_related = (f"run__{Run.NAME_RELATION}", "created_by")
