"""Admin pages of queues and draws."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.role_admin import ReadOnlyAdmin, RoleAdmin
from evaluation.core.roles import Action
from evaluation.models import Run
from review.models import Draw, ReviewQueue


@admin.register(ReviewQueue)
class ReviewQueueAdmin(RoleAdmin):
    """Queues; only guideline and deadline can be changed."""

    site_url_name = "queue"
    view_action = change_action = Action.MANAGE_REVIEW
    list_display = ("name", "project", "mode", "reviews_needed", "reveal", "state", "deadline", "page")
    list_filter = ("state", "mode", "project")
    search_fields = ("name",)
    fields = ("name", "project", "guideline", "deadline", "mode", "reveal", "reviews_needed", "hide_system", "state")
    list_select_related = ("project",)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> tuple[str, ...]:
        """Make every field read-only that ratings depend on."""
        return tuple(name for name in self.fields if name not in {"guideline", "deadline"})

    @admin.display(description=_("page"))
    def page(self, row: ReviewQueue) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("queue", args=[row.pk]), _("Open"))


@admin.register(Draw)
class DrawAdmin(ReadOnlyAdmin):
    """Draws, read-only."""

    path = "run__project_id"
    view_action = Action.MANAGE_REVIEW
    list_display = ("run", "queue", "strategy", "seed", "frame_size", "planned_after_looking", "created_at")
    list_filter = ("strategy",)
    list_select_related = (f"run__{Run.NAME_RELATION}", "queue")
