"""Form of the margin within which two runs count as alike."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class MarginForm(forms.Form):
    """Largest difference of overall scores, from 0 to 1, that does not matter; empty if every difference does."""

    margin = forms.FloatField(
        required=False,
        min_value=0.001,
        max_value=1,
        label=_("Margin"),
        help_text=_(
            "Largest difference in the overall score that doesn't matter, such as 0.03. Leave empty if "
            "every difference matters."
        ),
        widget=forms.NumberInput(attrs={"step": "0.001"}),
    )
