"""App of questions, systems, judges, runs and scores."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class EvaluationConfig(AppConfig):
    name = "evaluation"
    verbose_name = _("Evaluation")

    def ready(self) -> None:
        """Register background tasks and system checks."""
        register(self.label, self.name)
        from evaluation import checks  # noqa: F401  -- registers itself; apps must be loaded first
