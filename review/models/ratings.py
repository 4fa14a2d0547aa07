"""Ratings and overrides of experts, exposure to judge values before rating, and cached agreement figures."""

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import PROTECT, Count, F, Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, ApiToken, MetricDefinition, RubricVersion, User
from evaluation.storage.append_only import AppendOnly, TimestampedModel
from review.models.queues import Assignment


class Rating(AppendOnly):
    """An expert's value, label or "cannot judge" for one metric of one answer.

    ``initial`` ratings are made before the judge is shown, ``final`` ones after a reveal. ``seq`` orders rows of one
    phase: the last one before the reveal counts. Imported ratings have an ``author`` instead of an assignment.
    ``active_ms`` is the active time in milliseconds. ``probability`` is the sampling probability of an imported rating.
    ``token`` is the API token of a rating sent by REST; a token made by another user never writes a blind rating."""

    erasable = ("comment",)
    author_path = "reviewer"

    answer = models.ForeignKey(Answer, on_delete=PROTECT, related_name="ratings")
    metric = models.ForeignKey(MetricDefinition, on_delete=PROTECT, related_name="ratings")
    assignment = models.ForeignKey(Assignment, on_delete=PROTECT, null=True, related_name="ratings")
    reviewer = models.ForeignKey(User, on_delete=PROTECT, null=True, related_name="ratings")
    author = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=10, choices=[("review", _("review")), ("import", _("import"))])
    phase = models.CharField(max_length=10, choices=[("initial", _("first")), ("final", _("final"))])
    blind = models.BooleanField()
    seq = models.PositiveIntegerField(default=1)
    value = models.FloatField(null=True)
    label = models.CharField(max_length=200, null=True)
    cannot_judge = models.BooleanField(default=False)
    reason_code = models.CharField(max_length=40, blank=True)
    comment = models.TextField(blank=True)
    parts = models.JSONField(null=True)
    rubric_version = models.ForeignKey(RubricVersion, on_delete=PROTECT, null=True, related_name="+")
    probability = models.FloatField(null=True)
    sampling = models.CharField(max_length=10, blank=True)
    active_ms = models.PositiveIntegerField(null=True)
    idempotency_key = models.CharField(max_length=100, unique=True)
    token = models.ForeignKey(ApiToken, on_delete=PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("rating")
        verbose_name_plural = _("ratings")
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "metric", "phase", "seq"],
                condition=Q(assignment__isnull=False),
                name="one_rating_per_turn",
            ),
            models.CheckConstraint(
                condition=Q(
                    value__isnull=False, label__isnull=True, cannot_judge=False, value__gt=-1e12, value__lt=1e12
                )
                | Q(value__isnull=True, label__isnull=False, cannot_judge=False)
                | Q(value__isnull=True, label__isnull=True, cannot_judge=True),
                name="rating_has_one_value",
            ),
            models.CheckConstraint(
                condition=Q(assignment__isnull=False, reviewer__isnull=False, source="review")
                | (Q(assignment__isnull=True, source="import") & ~Q(author="")),
                name="rating_has_an_author",
            ),
            models.CheckConstraint(condition=~Q(phase="final", blind=True), name="final_is_never_blind"),
            models.CheckConstraint(condition=Q(phase__in=["initial", "final"]), name="known_phase"),
            models.CheckConstraint(
                condition=Q(probability__isnull=True) | Q(probability__gt=0, probability__lte=1),
                name="rating_probability_in_range",
            ),
        ]
        indexes = [models.Index(fields=["answer", "metric"], name="ratings_of_answer")]

    @classmethod
    def unsupported(cls, rows: models.QuerySet[Any]) -> Iterable[int]:
        """Ratings of another person or answer than their assignment's, or beyond its submits, undos and reratings."""
        own_assignment = Q(assignment__reviewer=F("reviewer"), assignment__item__answer=F("answer"))
        reviewed = rows.filter(source="review").annotate(
            undone=Count("assignment__events", filter=Q(assignment__events__verb="undo")),
            rerated=Count("assignment__events", filter=Q(assignment__events__verb="again")),
        )
        is_submitted = Q(assignment__submitted_at__isnull=False) | Q(undone__gt=0)
        is_final = Q(seq__lte=F("rerated")) | Q(seq=F("rerated") + 1, assignment__revealed_at__isnull=False)
        initial = Q(phase="initial", seq__lte=F("undone") + 1) & is_submitted
        supported = own_assignment & (initial | Q(phase="final") & is_final)
        keys: Iterable[int] = reviewed.exclude(supported).values_list("pk", flat=True)
        return keys


class RatingPart(AppendOnly):
    """A part behind a rating: a claim, statement, nugget or passage with the expert's verdict.

    ``context`` is the position of the passage, from 0; ``added`` marks a part that the expert added."""

    erasable = ("text",)
    author_path = "rating__reviewer"
    erasure_filter = {"added": True}

    rating = models.ForeignKey(Rating, on_delete=PROTECT, related_name="rated_parts")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    text = models.TextField()
    verdict = models.CharField(max_length=40)
    context = models.PositiveIntegerField(null=True)
    added = models.BooleanField(default=False)

    class Meta:
        ordering = ["rating", "position"]
        constraints = [
            models.UniqueConstraint(fields=["rating", "position"], name="one_part_per_place"),
            models.CheckConstraint(condition=~Q(verdict=""), name="part_has_a_verdict"),
        ]


class SuggestedAnswer(AppendOnly):
    """An expert's own answer, given with a rating; the newest of an assignment counts."""

    erasable = ("text",)
    author_path = "assignment__reviewer"

    assignment = models.ForeignKey(Assignment, on_delete=PROTECT, related_name="suggestions")
    text = models.TextField()

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="suggestion_has_text")]


class Override(AppendOnly):
    """A decision above the ratings: an override, an adjudication, or the revert of the newest one."""

    erasable = ("reason",)
    author_path = "by"

    class Kind(models.TextChoices):
        OVERRIDE = "override", _("override")
        ADJUDICATION = "adjudication", _("adjudication")
        REVERT = "revert", _("revert")

    answer = models.ForeignKey(Answer, verbose_name=_("answer"), on_delete=PROTECT, related_name="overrides")
    metric = models.ForeignKey(MetricDefinition, verbose_name=_("metric"), on_delete=PROTECT, related_name="overrides")
    seq = models.PositiveIntegerField(_("sequence number"))
    kind = models.CharField(_("kind"), max_length=15, choices=Kind.choices)
    value = models.FloatField(_("value"), null=True)
    label = models.CharField(_("class"), max_length=200, null=True)
    judge_seen = models.BooleanField(_("judge seen"), default=True)
    reason = models.TextField(_("reason"))
    by = models.ForeignKey(User, verbose_name=_("by"), on_delete=PROTECT, related_name="overrides")
    token = models.ForeignKey(ApiToken, verbose_name=_("API token"), on_delete=PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("override")
        verbose_name_plural = _("overrides")
        constraints = [
            models.UniqueConstraint(fields=["answer", "metric", "seq"], name="one_override_per_turn"),
            models.CheckConstraint(condition=~Q(reason=""), name="override_says_why"),
            models.CheckConstraint(
                condition=Q(kind="revert", value__isnull=True, label__isnull=True)
                | (~Q(kind="revert") & Q(value__isnull=False, label__isnull=True, value__gt=-1e12, value__lt=1e12))
                | (~Q(kind="revert") & Q(value__isnull=True, label__isnull=False)),
                name="override_has_one_value",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.answer_id}/{self.metric_id}"


class Exposure(AppendOnly):
    """Record that a user saw the judge's value of an answer (or of a whole run, in an export) before rating it."""

    user = models.ForeignKey(User, on_delete=PROTECT, related_name="exposures")
    scope = models.CharField(max_length=10, choices=[("answer", "answer"), ("run", "run")])
    object_id = models.PositiveBigIntegerField()
    via = models.CharField(max_length=30)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "scope", "object_id"], name="exposed_once")]


class CachedAgreement(TimestampedModel):
    """Figures as JSON under the hash of all their inputs. Rows never become wrong, only unused, and can be deleted at
    any time."""

    key = models.CharField(max_length=64, unique=True)
    content = models.JSONField()

    class Meta:
        verbose_name = _("cached figures")
        verbose_name_plural = _("cached figures")
        indexes = [models.Index(fields=["created_at"], name="kept_figures_by_age")]
