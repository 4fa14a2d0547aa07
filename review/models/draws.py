"""Draws: which answers were taken for review, and with which probability each could have been."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, Run
from evaluation.storage.rows import AppendOnly, Authored
from review.models.queues import ReviewQueue


class Draw(AppendOnly, Authored):
    """A sample for review. ``run`` is the run whose judge scores steer it; ``params`` and ``seed`` repeat it."""

    queue = models.ForeignKey(
        ReviewQueue, verbose_name=_("review queue"), on_delete=models.PROTECT, null=True, related_name="draws"
    )
    run = models.ForeignKey(Run, verbose_name=_("run"), on_delete=models.PROTECT, related_name="draws")
    strategy = models.CharField(_("strategy"), max_length=20)
    params = models.JSONField(_("parameters"), default=dict)
    seed = models.PositiveBigIntegerField(_("seed"))
    frame_size = models.PositiveIntegerField(_("answers to draw from"))
    planned_after_looking = models.BooleanField(_("planned after a first look"), default=False)

    class Meta:
        verbose_name = _("draw")
        verbose_name_plural = _("draws")

    def __str__(self) -> str:
        return f"{self.strategy} {self.run_id}"


class FrameMember(AppendOnly):
    """An answer that the draw could have taken. ``probability`` is null for hand-picked answers only."""

    draw = models.ForeignKey(Draw, on_delete=models.PROTECT, related_name="frame")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="+")
    stratum = models.CharField(max_length=300, blank=True)
    probability = models.FloatField(null=True)
    sampled = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["draw", "answer"], name="one_frame_member"),
            models.CheckConstraint(
                condition=Q(probability__isnull=True) | Q(probability__gt=0, probability__lte=1),
                name="probability_in_range",
            ),
        ]
        indexes = [models.Index(fields=["draw", "stratum"], name="frame_by_stratum")]

    def __str__(self) -> str:
        return f"{self.draw_id}/{self.answer_id}"
