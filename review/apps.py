"""The human half: draws, queues, ratings, agreement, reports."""

from collections.abc import Collection
from functools import partial
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import REGISTRY, _load, register
from evaluation.storage import guards


class ReviewConfig(AppConfig):
    """Registers the tables of the human half, its guards and background tasks, and who sees judges' values."""

    name = "review"
    verbose_name = _("Review")

    def ready(self) -> None:
        """Register guards and background tasks, and record views of judges' values."""
        register(self)
        from evaluation.accounts.access import judge_values_viewed
        from review.models.guards import GUARDS

        guards.register(self.label, GUARDS)
        judge_values_viewed.connect(record_exposure)
        for name, module in NOT_YET_APPS.items():
            REGISTRY[name] = partial(_load, module)


NOT_YET_APPS = {
    "batches": "evaluation.extras.batches.hooks",
    "pairs": "review.extras.pairs.hooks",
    "retrieval_truth": "review.extras.retrieval_truth.hooks",
}
if settings.CONCORD_OIDC:
    NOT_YET_APPS["sso"] = "evaluation.extras.sso"
if settings.CONCORD_SECOND_FACTOR != "off":
    NOT_YET_APPS["second_factor"] = "evaluation.extras.second_factor"


def record_exposure(*, user: Any, answer_ids: Collection[int], via: str, **_signal: object) -> None:
    """Record that the person is no longer blind to the judges' values of these answers."""
    from review.evidence.answers import expose_answers

    expose_answers(user, answer_ids, via)
