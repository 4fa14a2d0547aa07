"""Admin of overrides."""

from __future__ import annotations

from django.contrib import admin

from evaluation.accounts.role_admin import ReadOnlyAdmin
from evaluation.core.roles import Action
from review.models import Override


@admin.register(Override)
class OverrideAdmin(ReadOnlyAdmin):
    """Overrides and adjudications of all answers."""

    path = "answer__answer_set__project_id"
    view_action = Action.ADJUDICATE
    list_display = ("answer", "metric", "kind", "value", "label", "by", "created_at")
    list_filter = ("kind",)
    list_select_related = ("metric", "by")
