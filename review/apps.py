"""The human half: draws, queues, ratings, agreement, reports."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ReviewConfig(AppConfig):
    """Registers the tables of the human half."""

    name = "review"
    verbose_name = _("Review")
