"""The fields of REST bodies and queries for settings."""

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
    """A body with a field for each of its ``settings``."""

    settings: Iterable[Setting] = ()

    def get_fields(self) -> dict[str, AnyField]:
        """The settings, and what is declared."""
        return {one.name: _field(one) for one in self.settings} | super().get_fields()


def _field(one: Setting) -> AnyField:
    low, high = one.limits
    field: dict[str, Any] = {"default": one.default, "help_text": one.body or None}
    if one.optional:
        field["allow_null"] = True
    if one.many:
        texts = serializers.CharField(max_length=high)
        return serializers.ListField(child=texts, max_length=one.most, **field | {"default": list})
    if one.choices:
        choices = getattr(one.kind, "choices", list(one.choices))
        return serializers.ChoiceField(choices=choices, allow_blank=one.default == "", **field)
    if one.kind is Decimal:
        return serializers.DecimalField(max_digits=12, decimal_places=4, min_value=low, **field)
    if one.kind is str:
        field |= {"allow_blank": True, "max_length": high}
    if one.kind in {int, float}:
        field |= {"min_value": low, "max_value": high}
    return KINDS[one.kind](**field)
