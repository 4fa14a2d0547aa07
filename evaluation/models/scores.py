"""Metric definitions, scores with their verifiable parts, and custom criteria with their versions and activations."""

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import PROTECT, Q
from django.utils.translation import gettext_lazy as _

from evaluation.core.scales import Scale
from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.models.accounts import Project
from evaluation.models.judges import Activation, JudgeVersion, RubricVersion
from evaluation.models.runs import Answer, Run
from evaluation.models.work import WorkUnit, score_origin
from evaluation.storage.append_only import AppendOnly, Authored, TimestampedModel


class MetricDefinition(AppendOnly):
    """A metric that ratings and scores refer to. ``Scale.parse`` reads ``scale``.

    A new rubric version is a new metric version only if scale, levels or review form change."""

    name = models.CharField(_("name"), max_length=100)
    version = models.PositiveIntegerField(_("version"))
    kind = models.CharField(_("kind"), max_length=10)
    scale = models.CharField(_("scale"), max_length=500)
    direction = models.CharField(_("direction"), max_length=10, default="higher")
    review_form = models.CharField(_("review form"), max_length=10, default="level")
    rubric_family = models.CharField(_("rubric family"), max_length=100, blank=True)
    title = models.JSONField(_("title"), default=dict)
    content_hash = models.CharField(_("content hash"), max_length=64, editable=False)

    class Meta:
        verbose_name = _("metric")
        verbose_name_plural = _("metrics")
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="one_metric_version")]

    def __str__(self) -> str:
        return self.name

    def read_scale(self) -> Scale:
        return Scale.parse(self.scale)


class Score(AppendOnly):
    """One metric of one answer by one scorer: a value or label, or a status with its reason.

    ``origin`` identifies the unit and repeat, or the imported row; the highest round of an origin counts. ``author`` is
    the label of an imported judge."""

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="scores")
    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="scores")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="scores")
    unit = models.ForeignKey(WorkUnit, on_delete=PROTECT, null=True, related_name="scores")
    origin = models.CharField(max_length=64)
    round = models.PositiveIntegerField(default=0)
    repeat = models.PositiveIntegerField(default=1)
    judge_version = models.ForeignKey(JudgeVersion, on_delete=PROTECT, null=True, related_name="+")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    author = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=15)
    value = models.FloatField(null=True)
    label = models.CharField(max_length=200, null=True)
    reason = models.TextField(blank=True)
    detail = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("score")
        verbose_name_plural = _("scores")
        constraints = [
            models.UniqueConstraint(fields=["origin", "metric", "round"], name="one_score_per_origin"),
            models.CheckConstraint(
                condition=~Q(status="scored")
                | Q(value__isnull=False, label__isnull=True, value__gt=-1e12, value__lt=1e12)
                | Q(value__isnull=True, label__isnull=False),
                name="scored_has_one_value",
            ),
            models.CheckConstraint(
                condition=Q(status="scored") | (Q(value__isnull=True, label__isnull=True) & ~Q(reason="")),
                name="unscored_has_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["scored", "failed", "not_applicable"]), name="known_score_status"
            ),
        ]
        indexes = [
            models.Index(fields=["run", "metric", "status"], name="scores_of_run"),
            # With two columns only, SQLite may use the run's index instead and read all of its scores.
            models.Index(fields=["answer", "run", "metric"], name="scores_of_answer_in_run"),
        ]

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """Scores of units with the key of another unit, or of a round that the unit has not reached; and scores of a
        judge behind an endpoint without a unit."""
        yield from rows.filter(unit=None, judge_version__endpoint__isnull=False).values_list("pk", flat=True)
        units = rows.filter(unit__isnull=False).values_list(
            *("pk", "origin", "round", "unit__round", "unit__run", "unit__kind", "unit__key", "unit__needs__key"),
            "unit__repeat",
        )
        for pk, origin, round_number, last_round, run, kind, key, needed_key, repeat in units.iterator():
            step_key = needed_key if kind == WorkUnit.Kind.EMBED and needed_key else key
            if origin != score_origin(run, step_key, repeat) or round_number > last_round:
                yield pk


class ImportedJudge(AppendOnly):
    """The imported judge whose scores of a metric count in a run: the first one for a metric without a judge of the
    run.

    Later imports are only compared, so that no import changes an existing figure."""

    run = models.ForeignKey(Run, on_delete=PROTECT, related_name="imported_judges")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="+")
    author = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "metric"], name="one_imported_judge_per_metric")]

    def __str__(self) -> str:
        return self.author


class Finding(AppendOnly):
    """A claim, statement, context verdict, nugget, keyword or flag behind a score (``core.samples.Finding``).

    ``start`` and ``end`` are offsets into the answer (``approximate`` where found by likeness), ``quote_start`` and
    ``quote_end`` of ``quote`` into the passage at position ``context``."""

    score = models.ForeignKey(Score, on_delete=PROTECT, related_name="findings")
    kind = models.CharField(max_length=20)
    position = models.PositiveIntegerField()
    text = models.TextField()
    verdict = models.CharField(max_length=40, blank=True)
    context = models.PositiveIntegerField(null=True)
    start = models.PositiveIntegerField(null=True)
    end = models.PositiveIntegerField(null=True)
    approximate = models.BooleanField(default=False)
    quote = models.TextField(blank=True, default="")
    quote_start = models.PositiveIntegerField(null=True)
    quote_end = models.PositiveIntegerField(null=True)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["score", "kind", "position"]
        constraints = [models.UniqueConstraint(fields=["score", "kind", "position"], name="one_finding_per_place")]


class Criterion(TimestampedModel, Authored):
    """A criterion by its name, which is also its metric's name and unique on the site."""

    project = models.ForeignKey(Project, verbose_name=_("project"), on_delete=PROTECT, related_name="criteria")
    name = models.CharField(_("name"), max_length=64, unique=True)

    class Meta:
        verbose_name = _("criterion")
        verbose_name_plural = _("criteria")

    def __str__(self) -> str:
        return self.name


class CriterionVersion(AppendOnly, Authored):
    """One version of a criterion, a draft until a lead activates it. Read ``spec`` through :meth:`read` only."""

    criterion = models.ForeignKey(Criterion, verbose_name=_("criterion"), on_delete=PROTECT, related_name="versions")
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
        return CriterionSpec.model_validate(self.spec)


class CriterionEvent(Activation):
    """The activation or deactivation of a criterion version by a lead.

    An activation names the metric and the rubrics created from the version, one for each of its languages."""

    class Verb(models.TextChoices):
        ACTIVATED = "activated", _("activated")
        DEACTIVATED = "deactivated", _("deactivated")

    SUBJECT_FIELDS = ("criterion",)

    criterion = models.ForeignKey(Criterion, on_delete=PROTECT, related_name="events")
    version = models.ForeignKey(CriterionVersion, on_delete=PROTECT, related_name="events")
    verb = models.CharField(max_length=20, choices=Verb.choices)
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, null=True, related_name="+")
    rubric_en = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    rubric_ko = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("criterion event")
        verbose_name_plural = _("criterion events")
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
        """Return the rubric in the language, else in the other one."""
        first, second = self.rubric_en, self.rubric_ko
        if language.startswith("ko"):
            first, second = second, first
        rubric = first or second
        # A constraint guarantees a rubric for activations.
        if rubric is None:
            raise ValueError(f"{self} names no rubric")
        return rubric
