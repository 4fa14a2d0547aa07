"""Base classes of tables: rows that may change, and rows that only ever get added."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Row(models.Model):
    """A row that knows when it was made."""

    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        abstract = True


class AppendOnly(Row):
    """A row that is inserted and never changed or deleted; triggers in the database refuse both.

    ``evaluation/storage/append_only.py`` installs the triggers for every subclass.
    """

    class Meta:
        abstract = True


class Authored(models.Model):
    """A row that a person made; empty where the product itself did."""

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("made by"),
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
    )

    class Meta:
        abstract = True
