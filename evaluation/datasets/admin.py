"""Admin of question sets and uploads."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.role_admin import ReadOnlyAdmin
from evaluation.core.roles import Action
from evaluation.models import ImportBatch, Question, QuestionSet


@admin.register(QuestionSet)
class QuestionSetAdmin(ReadOnlyAdmin):
    """Versions of question sets. "Add" opens the upload page."""

    site_url_name = "question-set"
    add_action = Action.EVALUATE
    list_display = ("name", "version", "project", "questions", "created_at", "created_by")
    list_filter = ("project",)
    search_fields = ("name",)
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Annotate the number of questions."""
        rows = super().get_queryset(request).select_related("project", "created_by")
        annotated: QuerySet[Any] = rows.annotate(question_count=Count("questions"))
        return annotated

    @admin.display(description=_("questions"))
    def questions(self, row: Any) -> int:
        return int(row.question_count)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Redirect to the upload page, since a set is imported from a file."""
        return redirect("question-set-upload")


@admin.register(Question)
class QuestionAdmin(ReadOnlyAdmin):
    """Questions of all versions."""

    path = "question_set__project_id"
    list_display = ("external_id", "question_set", "category", "difficulty", "text")
    list_filter = ("category",)
    search_fields = ("external_id", "text")
    list_select_related = ("question_set",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Omit questions whose import is unfinished."""
        rows: QuerySet[Any] = super().get_queryset(request).filter(question_set__is_unfinished=False)
        return rows


@admin.register(ImportBatch)
class ImportBatchAdmin(ReadOnlyAdmin):
    """Uploads, from preview to confirmation."""

    list_display = ("file_name", "kind", "name", "rows", "state", "created_at", "created_by")
    list_filter = ("state", "kind")
    exclude = ("content",)
