"""Practice examples with feedback, separate from all figures."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class PracticeConfig(AppConfig):
    name = "contrib.practice"
    verbose_name = _("Practice")

    def ready(self) -> None:
        register(self.label, self.name)
