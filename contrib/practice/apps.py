"""Practice examples with feedback, apart from all figures."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class PracticeConfig(AppConfig):
    """Registers the tables and extensions of the feature."""

    name = "contrib.practice"
    verbose_name = _("Practice")

    def ready(self) -> None:
        """Register the extensions of the core."""
        register(self.label, self.name)
