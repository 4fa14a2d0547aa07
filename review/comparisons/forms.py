"""The margin within which two runs are alike."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class MarginForm(forms.Form):
    """A difference of overall scores (0 to 1) that does not matter to the reader; empty where every one does."""

    margin = forms.FloatField(
        required=False,
        min_value=0.001,
        max_value=1,
        label=_("Margin"),
        help_text=_(
            "A difference in the overall score that does not matter, such as 0.03. Leave empty if every one does."
        ),
        widget=forms.NumberInput(attrs={"step": "0.001"}),
    )
