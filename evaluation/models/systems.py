"""Systems under test and their versions."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.models.accounts import Project
from evaluation.storage.rows import AppendOnly, Authored, Row


class System(Row, Authored):
    """A system under test, known by its name in a project."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=models.PROTECT, related_name="systems")
    name = models.CharField(_("name"), max_length=200)

    class Meta:
        verbose_name = _("system")
        verbose_name_plural = _("systems")
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_system_per_name")]

    def __str__(self) -> str:
        return self.name


class SystemVersion(AppendOnly, Authored):
    """A configuration of a system. ``adapter`` ``recorded`` means that answers are imported, not asked for."""

    system = models.ForeignKey(System, verbose_name=_("system"), on_delete=models.PROTECT, related_name="versions")
    version = models.PositiveIntegerField(_("version"))
    adapter = models.CharField(_("adapter"), max_length=40, default="recorded")
    config = models.JSONField(_("configuration"), default=dict, blank=True)
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("system version")
        verbose_name_plural = _("system versions")
        constraints = [models.UniqueConstraint(fields=["system", "version"], name="one_system_version")]

    def __str__(self) -> str:
        return f"{self.system} v{self.version}"
