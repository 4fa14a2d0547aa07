"""Form fields of settings, and their values in a valid form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms

from evaluation.specs.setting import Input, Setting

# The format of a browser's datetime-local field.
DATETIME_LOCAL_FORMAT = "%Y-%m-%dT%H:%M"
# Longer texts get several lines.
LONGEST_LINE = 1_000
WIDGETS = {"list": forms.Select, "radio": forms.RadioSelect, "checkboxes": forms.CheckboxSelectMultiple}


def form_fields(settings: Iterable[Setting]) -> dict[str, forms.Field]:
    """The fields of the settings that a form shows."""
    return {setting.input_name: _field(setting, setting.form) for setting in settings if setting.form}


def _field(setting: Setting, form_input: Input) -> forms.Field:
    arguments: dict[str, Any] = {
        "label": form_input.label,
        "help_text": form_input.help,
        "initial": setting.default,
        "required": False,
    }
    low, high = form_input.limits or setting.limits
    if form_input.choices or form_input.rows:
        choice_class = forms.MultipleChoiceField if setting.many else forms.ChoiceField
        arguments["required"] = not setting.many and (form_input.rows or setting.default != "")
        return choice_class(choices=list(form_input.choices.items()), widget=WIDGETS[form_input.widget], **arguments)
    if setting.kind is bool:
        return forms.BooleanField(**arguments | {"initial": setting.default != setting.is_inverted})
    if setting.kind is datetime:
        datetime_input = forms.DateTimeInput(format=DATETIME_LOCAL_FORMAT, attrs={"type": "datetime-local"})
        return forms.DateTimeField(
            input_formats=[DATETIME_LOCAL_FORMAT, f"{DATETIME_LOCAL_FORMAT}:%S"], widget=datetime_input, **arguments
        )
    if setting.kind is str:
        widget = forms.Textarea if high and high > LONGEST_LINE else forms.TextInput
        return forms.CharField(max_length=high, widget=widget, **arguments)
    if setting.kind is Decimal:
        return forms.DecimalField(min_value=low, max_digits=12, decimal_places=4, **arguments)
    factor = 100 if form_input.percent else 1
    low, high = (limit if limit is None else limit * factor for limit in (low, high))
    # Shows 2 rather than 2.0.
    arguments |= {"initial": None if setting.default is None else f"{setting.default * factor:.9g}"}
    number_class = forms.IntegerField if setting.kind is int else forms.FloatField
    return number_class(min_value=low, max_value=high, **arguments | {"required": not setting.optional})


def form_values(settings: Iterable[Setting], cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a valid form, by setting name."""
    values = {}
    for setting in settings:
        if setting.form:
            value = cleaned[setting.input_name]
            if setting.form.percent and value is not None:
                value /= 100
            values[setting.name] = not value if setting.is_inverted else value
    return values
