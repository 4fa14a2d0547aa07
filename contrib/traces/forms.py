"""Form for importing traces."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from contrib.traces.importing import Sampling
from evaluation.core.errors import DomainError
from evaluation.datasets.forms import UploadForm
from evaluation.messages.explanations import explain_refusal

PERSONAL_TITLES = [
    ("email", _("e-mail addresses")),
    ("phone", _("phone numbers")),
    ("resident_number", _("resident registration numbers")),
    ("card", _("card numbers")),
]
MAX_RULES = 20


def _lines_field(label: Any, help_text: Any) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})
    return forms.CharField(label=label, help_text=help_text, widget=area, required=False, max_length=10_000)


class TracesForm(UploadForm):
    """A file of traces, the sampling, and the masks."""

    map = group_by = encoding = qrels = None  # type: ignore[assignment]  # Django's way to have none of a form above
    file = forms.FileField(
        label=_("Trace file"),
        help_text=_(
            "OpenTelemetry (OTLP) as JSON or protobuf. Leave empty to use traces the system has sent. "
            "Nothing is imported before you confirm."
        ),
        required=False,
    )
    system = forms.CharField(
        label=_("System name"),
        max_length=200,
        help_text=_("Any name, such as my-rag. Use the same name each time to compare versions over time."),
    )
    name = forms.CharField(
        label=_("Question set name"),
        max_length=200,
        required=False,
        help_text=_("Default: “SYSTEM traces”. An existing name gets a new version."),
    )
    rules = _lines_field(
        _("Import all traces that match any of these"),
        _("One JMESPath expression per line, such as error != '' or latency_seconds > `20`."),
    )
    rate = forms.FloatField(
        label=_("Share of other traces to import"),
        min_value=0,
        max_value=1,
        initial=1,
        help_text=_("From 0 to 1. The same traces are chosen every time."),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    personal = forms.MultipleChoiceField(
        label=_("Also mask"),
        choices=PERSONAL_TITLES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Anything that looks like a key or password is always masked before it is stored."),
    )
    patterns = _lines_field(
        _("Mask custom patterns"), _("One per line. # is a digit, * at the end is the rest of the word: EMP-####")
    )

    @property
    def sampling(self) -> Sampling | None:
        """Sampling of a valid form; ``None`` with a form error for an invalid rule."""
        cleaned = self.cleaned_data
        rules, patterns = ([line.strip() for line in cleaned[name].splitlines()] for name in ("rules", "patterns"))
        try:
            masks = [*cleaned["personal"], *filter(None, patterns)]
            return Sampling(cleaned["rate"], tuple(filter(None, rules))[:MAX_RULES], tuple(masks))
        except DomainError as error:
            self.add_error("rules", explain_refusal(error))
            return None
