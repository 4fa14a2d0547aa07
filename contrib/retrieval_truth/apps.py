"""Relevance labels of question sets, repaired by experts."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class RetrievalTruthConfig(AppConfig):
    name = "contrib.retrieval_truth"
    verbose_name = _("Retrieval truth")

    def ready(self) -> None:
        register(self.label, self.name)
