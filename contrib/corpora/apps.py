"""App of corpora and the reference system."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class CorporaConfig(AppConfig):
    name = "contrib.corpora"
    verbose_name = _("Corpora")

    def ready(self) -> None:
        register(self.label, self.name)
