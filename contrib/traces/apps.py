"""App that imports traces of systems as questions and answers."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register
from evaluation.formats.record_formats import FORMATS, RecordFormat


class TracesConfig(AppConfig):
    name = "contrib.traces"
    verbose_name = _("Traces")

    def ready(self) -> None:
        """Register the feature and its record format."""
        register(self.label, self.name)
        FORMATS[self.label] = _record_format


def _record_format() -> RecordFormat:
    from contrib.traces.otlp import RECORDS

    return RECORDS
