"""Form fields of settings, and their values in a valid form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms

from evaluation.specs.setting import Input, Setting

# The format of a browser's datetime-local field.
MOMENT = "%Y-%m-%dT%H:%M"
# Longer texts get several lines.
LONGEST_LINE = 1_000
WIDGETS = {"list": forms.Select, "radio": forms.RadioSelect, "checkboxes": forms.CheckboxSelectMultiple}


def form_fields(settings: Iterable[Setting]) -> dict[str, forms.Field]:
    """The fields of the settings that a form shows."""
    return {setting.input_name: _field(setting, setting.form) for setting in settings if setting.form}


def _field(setting: Setting, form_input: Input) -> forms.Field:
    field: dict[str, Any] = {
        "label": form_input.label,
        "help_text": form_input.help,
        "initial": setting.default,
        "required": False,
    }
    low, high = form_input.limits or setting.limits
    if form_input.choices or form_input.rows:
        kind = forms.MultipleChoiceField if setting.many else forms.ChoiceField
        field["required"] = not setting.many and (form_input.rows or setting.default != "")
        return kind(choices=list(form_input.choices.items()), widget=WIDGETS[form_input.widget], **field)
    if setting.kind is bool:
        return forms.BooleanField(**field | {"initial": setting.default != setting.is_inverted})
    if setting.kind is datetime:
        moment = forms.DateTimeInput(format=MOMENT, attrs={"type": "datetime-local"})
        return forms.DateTimeField(input_formats=[MOMENT, f"{MOMENT}:%S"], widget=moment, **field)
    if setting.kind is str:
        widget = forms.Textarea if high and high > LONGEST_LINE else forms.TextInput
        return forms.CharField(max_length=high, widget=widget, **field)
    if setting.kind is Decimal:
        return forms.DecimalField(min_value=low, max_digits=12, decimal_places=4, **field)
    factor = 100 if form_input.percent else 1
    low, high = (limit if limit is None else limit * factor for limit in (low, high))
    # Shows 2 rather than 2.0.
    field |= {"initial": None if setting.default is None else f"{setting.default * factor:.9g}"}
    number = forms.IntegerField if setting.kind is int else forms.FloatField
    return number(min_value=low, max_value=high, **field | {"required": not setting.optional})


def form_values(settings: Iterable[Setting], cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """The values of settings from a valid form, by the fields of the specification."""
    values = {}
    for setting in settings:
        if setting.form:
            value = cleaned[setting.input_name]
            if setting.form.percent and value is not None:
                value /= 100
            values[setting.name] = not value if setting.is_inverted else value
    return values
