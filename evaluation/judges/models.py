"""Endpoints, judges and rubrics. A judge is an endpoint, a model and parameters; its versions never change."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.models import Project
from evaluation.rows import AppendOnly, Authored, Row


class Endpoint(Row, Authored):
    """An OpenAI-compatible server. Its origin must stand on the operator's allow-list to be called.

    The key is named by an environment variable (``key_env``) and never stored here.
    """

    name = models.CharField(_("name"), max_length=100, unique=True)
    base_url = models.CharField(_("base URL"), max_length=300)
    key_env = models.CharField(_("environment variable of the key"), max_length=100, blank=True)
    max_concurrency = models.PositiveIntegerField(_("concurrent calls"), default=32)
    cooldown_until = models.DateTimeField(_("resting until"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        constraints = [
            models.CheckConstraint(condition=Q(max_concurrency__gte=1, max_concurrency__lte=1000), name="sane_limit")
        ]

    def __str__(self) -> str:
        return self.name


class JudgeVersion(AppendOnly, Authored):
    """A judge: endpoint + model + parameters. Without an endpoint it is the offline baseline."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=models.PROTECT, related_name="judges")
    name = models.CharField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    endpoint = models.ForeignKey(
        Endpoint, verbose_name=_("endpoint"), on_delete=models.PROTECT, null=True, blank=True, related_name="judges"
    )
    model = models.CharField(_("model"), max_length=200)
    language = models.CharField(_("rubric language"), max_length=5, default="en")
    params = models.JSONField(_("parameters"), default=dict, blank=True)
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("judge")
        verbose_name_plural = _("judges")
        constraints = [models.UniqueConstraint(fields=["project", "name", "version"], name="one_judge_version")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def is_baseline(self) -> bool:
        """Whether this is the offline lexical baseline, which every page must call so."""
        return self.endpoint_id is None


class RubricVersion(AppendOnly, Authored):
    """A judge prompt with its anchored levels; ``spec`` is read through ``evaluation.judging.rubric`` only."""

    family = models.CharField(_("family"), max_length=100)
    language = models.CharField(_("language"), max_length=5)
    version = models.PositiveIntegerField(_("version"))
    spec = models.JSONField(_("content"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("rubric")
        verbose_name_plural = _("rubrics")
        constraints = [models.UniqueConstraint(fields=["family", "language", "version"], name="one_rubric_version")]

    def __str__(self) -> str:
        return f"{self.family} v{self.version} ({self.language})"
