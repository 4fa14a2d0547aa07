"""App of login by an OpenID Connect provider."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class SsoConfig(AppConfig):
    name = "contrib.sso"
    verbose_name = _("Single sign-on")

    def ready(self) -> None:
        register(self.label, self.name)
