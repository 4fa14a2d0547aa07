"""Django app of review queues, ratings, agreement, reports and calibration."""

from collections.abc import Collection
from typing import Any

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register
from evaluation.storage import guards


class ReviewConfig(AppConfig):
    """Registers the app's tables, guards and background tasks, and tracks who sees judge values."""

    name = "review"
    verbose_name = _("Review")

    def ready(self) -> None:
        """Register guards and background tasks, and record views of judges' values."""
        register(self.label, self.name)
        from evaluation.accounts.access import judge_values_viewed
        from review.models.guards import GUARDS

        guards.register(self.label, GUARDS)
        judge_values_viewed.connect(record_exposure)


def record_exposure(*, user: Any, answer_ids: Collection[int], via: str, **_signal: object) -> None:
    """Record that the person is no longer blind to the judges' values of these answers."""
    from review.evidence.answers import record_answer_exposure

    record_answer_exposure(user, answer_ids, via)
