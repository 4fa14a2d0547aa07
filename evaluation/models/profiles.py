"""Profiles: which metrics, which weights, which thresholds. Versions never change."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.models.accounts import Project
from evaluation.storage.rows import AppendOnly, Authored


class ProfileVersion(AppendOnly, Authored):
    """One version of a profile; ``spec`` is read through ``evaluation.profiles.spec`` only."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=models.PROTECT, related_name="profiles")
    name = models.CharField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    spec = models.JSONField(_("content"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_profile_version")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"
