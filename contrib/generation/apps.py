"""App of generated question sets."""

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class GenerationConfig(AppConfig):
    """App of generated question sets, which needs corpora."""

    name = "contrib.generation"
    verbose_name = _("Generated questions")

    def ready(self) -> None:
        """Register the feature.

        :raises ImproperlyConfigured: without ``contrib.corpora``."""
        if not apps.is_installed("contrib.corpora"):
            raise ImproperlyConfigured("contrib.generation needs contrib.corpora: install both, or neither.")
        register(self.label, self.name)
