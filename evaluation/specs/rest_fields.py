"""Serializer fields of settings, for REST bodies and queries."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from rest_framework import serializers

from evaluation.specs.setting import Setting

AnyField = serializers.Field[Any, Any, Any, Any]
KINDS: dict[Any, type[AnyField]] = {
    bool: serializers.BooleanField,
    datetime: serializers.DateTimeField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    UUID: serializers.UUIDField,
}


class SettingsSerializer(serializers.Serializer[Any]):
    """A serializer with a field for each of its ``settings``."""

    settings: Iterable[Setting] = ()

    def get_fields(self) -> dict[str, AnyField]:
        return {setting.name: _field(setting) for setting in self.settings} | super().get_fields()


def _field(setting: Setting) -> AnyField:
    low, high = setting.limits
    field: dict[str, Any] = {"default": setting.default, "help_text": setting.body or None}
    if setting.optional:
        field["allow_null"] = True
    if setting.many:
        texts = serializers.CharField(max_length=high)
        return serializers.ListField(child=texts, max_length=setting.most, **field | {"default": list})
    if setting.choices:
        choices = getattr(setting.kind, "choices", list(setting.choices))
        return serializers.ChoiceField(choices=choices, allow_blank=setting.default == "", **field)
    if setting.kind is Decimal:
        return serializers.DecimalField(max_digits=12, decimal_places=4, min_value=low, **field)
    if setting.kind is str:
        field |= {"allow_blank": True, "max_length": high}
    if setting.kind in {int, float}:
        field |= {"min_value": low, "max_value": high}
    return KINDS[setting.kind](**field)
