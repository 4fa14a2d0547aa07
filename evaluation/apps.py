"""The machine's half: questions, systems, judges, runs, scores."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvaluationConfig(AppConfig):
    """Registers the tables of the machine's half and its system checks."""

    name = "evaluation"
    verbose_name = _("Evaluation")

    def ready(self) -> None:
        """Load the system checks."""
        from evaluation import checks  # noqa: F401  -- registers itself; apps must be loaded first
