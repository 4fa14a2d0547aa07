"""App of questions, systems, judges, runs and scores."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register
from evaluation.metric_packages.discovery import register_own_metrics


class EvaluationConfig(AppConfig):
    name = "evaluation"
    verbose_name = _("Evaluation")

    def ready(self) -> None:
        """Register background tasks, own metrics, system checks and the notice of password links."""
        register(self.label, self.name)
        register_own_metrics(settings.CONCORD_METRICS)
        from django.contrib.auth.signals import user_logged_in

        from evaluation import checks  # noqa: F401  -- registers itself; apps must be loaded first
        from evaluation.accounts.password_links import show_links

        # The app stands before Django's in INSTALLED_APPS, whose receiver replaces the time of the last login.
        user_logged_in.connect(show_links)
