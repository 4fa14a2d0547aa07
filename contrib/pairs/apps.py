"""Two answers to one question side by side, compared by people and judges."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class PairsConfig(AppConfig):
    """Registers the tables and extensions of the feature."""

    name = "contrib.pairs"
    verbose_name = _("Pairs")

    def ready(self) -> None:
        """Register the extensions of the core."""
        register(self.label, self.name)
