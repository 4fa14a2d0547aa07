"""Cached figures of pages, and the revisions that tell whether they are current."""

from django.db import models
from django.db.models import CASCADE
from django.utils.translation import gettext_lazy as _

from evaluation.models import Answer, QuestionSet
from evaluation.storage.append_only import TimestampedModel


class PendingInvalidation(models.Model):
    """A pending invalidation: a write on an answer that no :class:`QuestionSetRevision` counts yet.

    It is inserted in the writer's transaction instead of incrementing the revision, so that writers never wait for each
    other. There is no index, because the rows are few and always read in full."""

    answer = models.ForeignKey(Answer, on_delete=CASCADE, related_name="+", db_index=False)


class QuestionSetRevision(models.Model):
    """Counter of changes to the answers of a question set. Ratings also hold for equal answers in other answer sets, so
    all runs over a question set share one number."""

    question_set = models.OneToOneField(QuestionSet, on_delete=CASCADE, primary_key=True, related_name="+")
    number = models.PositiveBigIntegerField(default=0)


class CachedFigures(TimestampedModel):
    """Cached figures of a run or several (``subject``: their keys, joined by commas).

    ``stamp`` identifies the state of all inputs and is empty before the first build. ``seconds`` is the duration of the
    last build, ``rebuild_requested_at`` the time of a pending rebuild request. Rows can be deleted at any time."""

    kind = models.CharField(max_length=250)
    # Keys of up to fifty runs.
    subject = models.CharField(max_length=1_000)
    stamp = models.CharField(max_length=64, blank=True)
    content = models.BinaryField(default=bytes)
    built_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0.0)
    rebuild_requested_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("cached page figures")
        verbose_name_plural = _("cached page figures")
        constraints = [models.UniqueConstraint(fields=["kind", "subject"], name="kept_once")]
        indexes = [models.Index(fields=["built_at"], name="kept_by_age")]
