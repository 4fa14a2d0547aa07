"""Custom criteria: names, their immutable versions, and which version is in force since when."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.models.accounts import Project
from evaluation.models.judges import RubricVersion
from evaluation.models.scores import MetricDefinition
from evaluation.storage.append_only import AppendOnly, Authored, Row


class Criterion(Row, Authored):
    """A criterion by its name, which is also its metric's and therefore the only one on the site."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=models.PROTECT, related_name="criteria")
    name = models.CharField(_("name"), max_length=64, unique=True)

    class Meta:
        verbose_name = _("criterion")
        verbose_name_plural = _("criteria")

    def __str__(self) -> str:
        return self.name


class CriterionVersion(AppendOnly, Authored):
    """One version of a criterion, a draft until a lead activates it; ``spec`` is read through :meth:`read` only."""

    criterion = models.ForeignKey(
        Criterion, verbose_name=_("criterion"), on_delete=models.PROTECT, related_name="versions"
    )
    version = models.PositiveIntegerField(_("version"))
    spec = models.JSONField(_("content"))
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("custom criterion")
        verbose_name_plural = _("custom criteria")
        constraints = [models.UniqueConstraint(fields=["criterion", "version"], name="one_criterion_version")]

    def __str__(self) -> str:
        return f"{self.criterion} v{self.version}"

    def read(self) -> CriterionSpec:
        """The criterion as it was written."""
        return CriterionSpec.model_validate(self.spec)


class CriterionEvent(AppendOnly, Authored):
    """A lead put a version in force, or out of it. The newest event of a criterion, by ``seq``, tells how it stands.

    An activation names the metric and the rubrics that the version became, one for each language it is written in.
    """

    class Verb(models.TextChoices):
        ACTIVATED = "activated", _("activated")
        DEACTIVATED = "deactivated", _("deactivated")

    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="events")
    seq = models.PositiveIntegerField()
    version = models.ForeignKey(CriterionVersion, on_delete=models.PROTECT, related_name="events")
    verb = models.CharField(max_length=20, choices=Verb.choices)
    metric = models.ForeignKey(MetricDefinition, on_delete=models.PROTECT, null=True, related_name="+")
    rubric_en = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, null=True, related_name="+")
    rubric_ko = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("event of a criterion")
        verbose_name_plural = _("events of criteria")
        constraints = [
            models.UniqueConstraint(fields=["criterion", "seq"], name="one_criterion_event"),
            models.CheckConstraint(
                condition=Q(verb="deactivated")
                | Q(metric__isnull=False) & (Q(rubric_en__isnull=False) | Q(rubric_ko__isnull=False)),
                name="activation_names_metric_and_rubric",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.version} {self.verb}"

    def rubric(self, language: str) -> RubricVersion:
        """The rubric in a language, else in the other one."""
        first, second = self.rubric_en, self.rubric_ko
        if language.startswith("ko"):
            first, second = second, first
        found = first or second
        if found is None:  # refused by a constraint for activations
            raise ValueError(f"{self} names no rubric")
        return found
