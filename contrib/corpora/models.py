"""Corpora with their documents and chunks; versions are immutable."""

from django.db import models
from django.db.models import PROTECT, F, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models.accounts import Project
from evaluation.storage.append_only import AppendOnly, Authored


class Corpus(AppendOnly, Authored):
    """One version of a named corpus. Other documents or another splitting create a successor; equal content selects the
    existing version.

    ``content_hash`` covers ids, titles, texts and given chunks of all documents and the splitting, but no ``metadata``.
    ``splitting`` holds the parameters (``contrib.corpora.splitting.Splitting``)."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="corpora")
    name = models.CharField(_("name"), max_length=200)
    version = models.PositiveIntegerField(_("version"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)
    predecessor = models.ForeignKey(
        "self", verbose_name=_("previous version"), on_delete=PROTECT, null=True, blank=True, related_name="successors"
    )
    splitting = models.JSONField(_("splitting"), default=dict)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)

    class Meta:
        verbose_name = _("corpus")
        verbose_name_plural = _("corpora")
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_corpus_per_version")]
        indexes = [models.Index(fields=["project", "name", "content_hash"], name="corpus_by_content")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Document(AppendOnly):
    """A document of one version of a corpus, as the plain text read from its file.

    ``content_hash`` covers the text only, so that equal texts under different ids are detected."""

    corpus = models.ForeignKey(Corpus, verbose_name=_("corpus"), on_delete=PROTECT, related_name="documents")
    external_id = models.CharField(_("id"), max_length=200)
    position = models.PositiveIntegerField(_("position"))
    title = models.CharField(_("title"), max_length=300, blank=True)
    media = models.CharField(_("kind"), max_length=20)
    text = models.TextField(_("text"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering = ["corpus", "position"]
        constraints = [models.UniqueConstraint(fields=["corpus", "external_id"], name="one_document_per_id")]

    def __str__(self) -> str:
        return self.title or self.external_id


class Chunk(AppendOnly):
    """A passage of a document: ``text`` is ``document.text[start:end]``.

    Questions and systems refer to it by ``chunk_id``: the id given in the file, else the first half of its content
    hash, so that equal texts have the same id in every version. ``position`` counts through the whole corpus, from 0.
    """

    corpus = models.ForeignKey(Corpus, verbose_name=_("corpus"), on_delete=PROTECT, related_name="chunks")
    document = models.ForeignKey(Document, verbose_name=_("document"), on_delete=PROTECT, related_name="chunks")
    position = models.PositiveIntegerField(_("position"))
    chunk_id = models.CharField(_("id"), max_length=200)
    start = models.PositiveIntegerField(_("start"))
    end = models.PositiveIntegerField(_("end"))
    text = models.TextField(_("text"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("chunk")
        verbose_name_plural = _("chunks")
        ordering = ["corpus", "position"]
        constraints = [
            models.UniqueConstraint(fields=["corpus", "chunk_id"], name="one_chunk_per_id"),
            models.UniqueConstraint(fields=["corpus", "position"], name="one_chunk_per_position"),
            models.CheckConstraint(condition=Q(end__gt=F("start")), name="chunk_holds_text"),
        ]

    def __str__(self) -> str:
        return self.chunk_id
