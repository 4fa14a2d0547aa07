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
    ("phone", _("telephone numbers")),
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
        label=_("File with traces"),
        help_text=_(
            "OpenTelemetry (OTLP) as JSON or protobuf; left empty, what the system has sent. Nothing is imported "
            "before you confirm."
        ),
        required=False,
    )
    system = forms.CharField(
        label=_("Name of the system that gave them"),
        max_length=200,
        help_text=_("A name of your own, such as my-rag. Answers of one system are compared over time."),
    )
    name = forms.CharField(
        label=_("Name of the question set"),
        max_length=200,
        required=False,
        help_text=_("Left empty, “SYSTEM traces”. A known name makes its next version."),
    )
    rules = _lines_field(
        _("Take all traces for which one of these is true"),
        _("One JMESPath expression a line, such as error != '' or latency_seconds > `20`."),
    )
    rate = forms.FloatField(
        label=_("Share of the other traces"),
        min_value=0,
        max_value=1,
        initial=1,
        help_text=_("From 0 to 1; the same ones every time."),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    personal = forms.MultipleChoiceField(
        label=_("Mask as well"),
        choices=PERSONAL_TITLES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What looks like a key or a password is always masked, before anything is stored."),
    )
    patterns = _lines_field(
        _("Mask by patterns of your own"), _("One a line: # is a digit, * at the end the rest of the word: EMP-####")
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
