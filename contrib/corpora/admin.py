"""Read-only tables of corpora."""

from django.contrib import admin

from contrib.corpora.models import Corpus, Document
from evaluation.accounts.role_admin import ReadOnlyAdmin


@admin.register(Corpus)
class CorpusAdmin(ReadOnlyAdmin):
    """Versions of corpora."""

    site_url_name = "corpus"
    list_display = ("name", "version", "project", "created_at", "created_by")
    list_filter = ("project",)
    list_select_related = ("project", "created_by")
    search_fields = ("name",)
    ordering = ("-created_at",)


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """The documents of corpora."""

    site_url_name = "corpus-document"
    path = "corpus__project_id"
    list_display = ("external_id", "title", "media", "corpus")
    list_filter = ("media",)
    list_select_related = ("corpus",)
    search_fields = ("external_id", "title")
