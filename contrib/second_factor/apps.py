"""App of codes after the password."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class SecondFactorConfig(AppConfig):
    name = "contrib.second_factor"
    verbose_name = _("Second factor")

    def ready(self) -> None:
        register(self.label, self.name)
