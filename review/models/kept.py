"""Figures that take long to compute, kept until what they are made of changes."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.storage.rows import Row


class KeptFigures(Row):
    """Figures as JSON under the hash of everything they depend on. A row is never wrong, at most no longer asked for,
    and may be thrown away at any time."""

    key = models.CharField(max_length=64, unique=True)
    content = models.JSONField()

    class Meta:
        verbose_name = _("kept figures")
        verbose_name_plural = _("kept figures")
        indexes = [models.Index(fields=["created_at"], name="kept_figures_by_age")]

    def __str__(self) -> str:
        return self.key
