"""The form of traces."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from contrib.traces.importing import Sampling
from evaluation.core.errors import Refused
from evaluation.datasets.forms import UploadForm
from evaluation.messages.sentences import explain_refusal

PERSONAL_TITLES = [
    ("email", _("e-mail addresses")),
    ("phone", _("telephone numbers")),
    ("resident_number", _("resident registration numbers")),
    ("card", _("card numbers")),
]
MOST_RULES = 20


def _one_a_line(label: Any, help_text: Any) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})
    return forms.CharField(label=label, help_text=help_text, widget=area, required=False, max_length=10_000)


class TracesForm(UploadForm):
    """A file of traces, which of them are taken and what is masked."""

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
    rules = _one_a_line(
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
    patterns = _one_a_line(
        _("Mask by patterns of your own"), _("One a line: # is a digit, * at the end the rest of the word: EMP-####")
    )

    @property
    def sampling(self) -> Sampling | None:
        """What a valid form asks for; none where a rule is no expression, which its field then says."""
        said = self.cleaned_data
        rules, patterns = ([line.strip() for line in said[name].splitlines()] for name in ("rules", "patterns"))
        try:
            masks = [*said["personal"], *filter(None, patterns)]
            return Sampling(said["rate"], tuple(filter(None, rules))[:MOST_RULES], tuple(masks))
        except Refused as refused:
            self.add_error("rules", explain_refusal(refused))
            return None
