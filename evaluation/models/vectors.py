"""Embeddings that were computed once, kept by what they are of."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.storage.rows import AppendOnly


class KeptVector(AppendOnly):
    """The embedding of one text in one space. ``space`` identifies embedder, model and settings, ``text_hash`` the
    text in NFC; the text itself is not kept. ``vector`` holds four bytes per dimension."""

    space = models.CharField(max_length=64)
    text_hash = models.CharField(max_length=64)
    vector = models.BinaryField()

    class Meta:
        verbose_name = _("kept embedding")
        verbose_name_plural = _("kept embeddings")
        constraints = [models.UniqueConstraint(fields=["space", "text_hash"], name="one_vector_per_text")]

    def __str__(self) -> str:
        return f"{self.space[:8]}/{self.text_hash[:8]}"
