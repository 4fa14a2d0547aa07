"""App of questions, systems, judges, runs and scores."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register
from evaluation.storage.versions import refuse_newer_database


class EvaluationConfig(AppConfig):
    name = "evaluation"
    verbose_name = _("Evaluation")

    def ready(self) -> None:
        """Register background tasks and system checks, and refuse databases of newer code."""
        register(self.label, self.name)
        connection_created.connect(refuse_newer_database)
        from evaluation import checks  # noqa: F401  -- registers itself; apps must be loaded first
