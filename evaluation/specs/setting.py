"""Settings: default, type and range of a field, and its texts in forms, commands and REST."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.samples import FrozenModel

# A string or a lazy translation.
Text = Any


class Input(NamedTuple):
    """The form field of a setting, in the open part (``main``) or a collapsed one. With ``rows`` its choices are
    database rows; with ``percent`` it shows a share in percent. A yes-or-no setting with its own ``name`` is shown
    inverted. ``limits`` may be narrower than the setting's."""

    part: Literal["main", "draw", "people", "more"]
    label: Text
    help: Text = ""
    choices: Mapping[str, Text] = MappingProxyType({})
    widget: Literal["list", "radio", "checkboxes"] = "list"
    rows: bool = False
    name: str = ""
    percent: bool = False
    limits: tuple[Any, Any] | None = None


class Flag(NamedTuple):
    """The command-line flag of a setting. A yes-or-no setting with its own ``name`` is inverted. ``also`` are aliases.
    Several values are given by repeating the flag (``again``) or after one flag (``at_once``)."""

    help: str = ""
    name: str = ""
    also: tuple[str, ...] = ()
    metavar: str | None = None
    several: Literal["", "again", "at_once"] = ""


# Pydantic would compute hash and repr of lazy texts.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Setting:
    """A declared setting. :func:`settings_of` fills ``name`` and the following fields from the specification.

    ``limits`` are inclusive; for a text they count characters. ``most`` is the maximum number of values. ``body`` is
    its text in the OpenAPI document. ``when`` says when to change the default. ``column`` is its title in a table."""

    limits: tuple[Any, Any] = (None, None)
    most: int | None = None
    form: Input | None = None
    flag: Flag | None = field(default=Flag())
    body: str = ""
    when: str = ""
    column: Text = ""
    name: str = ""
    kind: Any = None
    choices: tuple[str, ...] = ()
    many: bool = False
    optional: bool = False
    default: Any = None

    @property
    def input_name(self) -> str:
        """Its name in forms."""
        return self.form.name or self.name if self.form else self.name

    @property
    def option(self) -> str:
        """Its name in command options and files."""
        return self.flag.name or self.name if self.flag else self.name

    @property
    def is_inverted(self) -> bool:
        """Return whether forms and commands show the inverse."""
        return self.kind is bool and {self.input_name, self.option} != {self.name}

    def check(self, value: Any) -> None:
        """Validate a value.

        :raises DomainError: ``setting_range`` for a number out of range, ``text_too_long``.
        :raises UnknownName: for an unknown choice."""
        low, high = self.limits
        if self.choices and value not in (*self.choices, self.default):
            raise UnknownName(self.name, str(value), list(self.choices))
        number = isinstance(value, int | float | Decimal)
        if high is not None and number and not (math.isfinite(value) and low <= value <= high):
            raise DomainError("setting_range", field=self.name, low=low, high=high)
        if high is not None and isinstance(value, str) and len(value) > high:
            raise DomainError("text_too_long", limit=high)


def setting(default: Any, **declared: Any) -> Any:
    """Declare a field of a specification: its default, and the fields of :class:`Setting`."""
    info = Field(default)
    info.metadata.append(Setting(**declared))
    return info


class Spec(FrozenModel):
    """A specification that validates its settings (:meth:`Setting.check`)."""

    @field_validator("*", mode="before")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if declared := settings_of(cls).get(info.field_name or ""):
            declared.check(value)
        return value


@cache
def settings_of(model: type[BaseModel]) -> dict[str, Setting]:
    """The settings of a specification by name, its own before inherited ones."""
    settings = {}
    own_fields = vars(model).get("__annotations__", {})
    for name, info in sorted(model.model_fields.items(), key=lambda item: item[0] not in own_fields):
        for declared in (metadata_item for metadata_item in info.metadata if isinstance(metadata_item, Setting)):
            settings[name] = _complete_setting(name, declared, info.annotation, info.default)
    return settings


def _complete_setting(name: str, declared: Setting, annotation: Any, default: Any) -> Setting:
    types = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    kinds = [kind for kind in types if kind is not NoneType]
    is_many = get_origin(kinds[0]) is tuple
    kind = get_args(kinds[0])[0] if is_many else str if get_origin(kinds[0]) is Literal else kinds[0]
    choices = tuple(str(value) for member in kinds for value in _choices(member) if value != "")
    completed = replace(declared, name=name, kind=kind, choices=choices, default=default)
    return replace(completed, many=is_many, optional=NoneType in types)


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()
