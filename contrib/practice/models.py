"""A person's progress with the practice examples, which enters no figure."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.models import User
from evaluation.storage.append_only import TimestampedModel


class PracticeProgress(TimestampedModel):
    """A person's levels by example and criterion in the current pass; emptied on restart. ``rounds`` counts completed
    passes."""

    user = models.OneToOneField(User, verbose_name=_("person"), on_delete=models.CASCADE, related_name="practice")
    given = models.JSONField(_("levels given"), default=dict)
    rounds = models.PositiveIntegerField(_("times completed"), default=0)

    class Meta:
        verbose_name = _("practice progress")
        verbose_name_plural = _("practice progress")

    def __str__(self) -> str:
        return f"{self.user}: {len(self.given)}"
