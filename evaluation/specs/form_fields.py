"""The fields of forms for settings, and what a valid form says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms

from evaluation.specs.setting import Input, Setting

MOMENT = "%Y-%m-%dT%H:%M"  # what a browser's field for date and time reads and sends
LONGEST_LINE = 1_000  # a text that may be longer gets several lines
WIDGETS = {"list": forms.Select, "radio": forms.RadioSelect, "checkboxes": forms.CheckboxSelectMultiple}


def form_fields(settings: Iterable[Setting]) -> dict[str, forms.Field]:
    """The fields of the settings that a form asks for."""
    return {one.input_name: _field(one, one.form) for one in settings if one.form}


def _field(one: Setting, asked: Input) -> forms.Field:
    field: dict[str, Any] = {"label": asked.label, "help_text": asked.help, "initial": one.default, "required": False}
    low, high = asked.limits or one.limits
    if asked.choices or asked.rows:
        kind = forms.MultipleChoiceField if one.many else forms.ChoiceField
        field["required"] = not one.many and (asked.rows or one.default != "")
        return kind(choices=list(asked.choices.items()), widget=WIDGETS[asked.widget], **field)
    if one.kind is bool:
        return forms.BooleanField(**field | {"initial": one.default != one.turned})
    if one.kind is datetime:
        moment = forms.DateTimeInput(format=MOMENT, attrs={"type": "datetime-local"})
        return forms.DateTimeField(input_formats=[MOMENT, f"{MOMENT}:%S"], widget=moment, **field)
    if one.kind is str:
        widget = forms.Textarea if high and high > LONGEST_LINE else forms.TextInput
        return forms.CharField(max_length=high, widget=widget, **field)
    if one.kind is Decimal:
        return forms.DecimalField(min_value=low, max_digits=12, decimal_places=4, **field)
    by = 100 if asked.percent else 1
    low, high = (limit if limit is None else limit * by for limit in (low, high))
    field |= {"initial": None if one.default is None else f"{one.default * by:.9g}"}  # 2 rather than 2.0
    number = forms.IntegerField if one.kind is int else forms.FloatField
    return number(min_value=low, max_value=high, **field | {"required": not one.optional})


def values_of(settings: Iterable[Setting], cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """What a valid form says of the settings, by the fields of the specification."""
    values = {}
    for one in settings:
        if one.form:
            value = cleaned[one.input_name]
            if one.form.percent and value is not None:
                value /= 100
            values[one.name] = not value if one.turned else value
    return values
