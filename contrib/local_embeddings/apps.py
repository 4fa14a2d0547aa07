"""Embeddings by a model on this machine."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class LocalEmbeddingsConfig(AppConfig):
    name = "contrib.local_embeddings"
    verbose_name = _("Local embeddings")

    def ready(self) -> None:
        register(self.label, self.name)
