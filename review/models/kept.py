"""Figures that pages read instead of computing them, and what tells whether they are still true."""

from django.db import models
from django.db.models import CASCADE
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, QuestionSet
from evaluation.storage.append_only import Row


class Touched(models.Model):
    """Something was said of an answer, or it was drawn or taken out, and no :class:`Revision` counts it yet. Written
    in the transaction of what it is about, so that both are seen together; nobody waits for anybody, as they would
    for a counter. There is no index of answers: the rows are few, and read from the first to the last."""

    answer = models.ForeignKey(Answer, on_delete=CASCADE, related_name="+", db_index=False)


class Revision(models.Model):
    """How often changes of answers to a question set were counted. Ratings hold for equal answers in other answer sets
    too, so all runs over a question set have one number."""

    question_set = models.OneToOneField(QuestionSet, on_delete=CASCADE, primary_key=True, related_name="+")
    number = models.PositiveBigIntegerField(default=0)


class Kept(Row):
    """Something computed from a run or several (``subject``: their keys, joined by commas). ``stamp`` names the state
    of everything it was computed from; it is empty before the first time. ``seconds`` is what computing it took,
    ``asked_at`` since when a worker is to do it anew. A row may be thrown away at any time."""

    kind = models.CharField(max_length=250)
    subject = models.CharField(max_length=1_000)  # of fifty runs
    stamp = models.CharField(max_length=64, blank=True)
    content = models.BinaryField(default=bytes)
    made_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0.0)
    asked_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("kept page figures")
        verbose_name_plural = _("kept page figures")
        constraints = [models.UniqueConstraint(fields=["kind", "subject"], name="kept_once")]
        indexes = [models.Index(fields=["made_at"], name="kept_by_age")]
