"""A setting: default, type and range of a field, and the texts of every entrance that asks for it."""

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

from evaluation.core.errors import Refused, UnknownName
from evaluation.core.samples import FrozenModel

Text = Any  # a string, or one that is translated when it is shown


class Input(NamedTuple):
    """The field of a form, in the part that is open (``main``) or in one that unfolds. ``rows``: the form offers rows
    of the database. With ``percent`` it asks for a share in percent; a yes-or-no setting with a ``name`` of its own is
    asked for the other way round. ``limits`` are narrower than the setting's."""

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
    """The flag of a command. A yes-or-no setting with a ``name`` of its own is asked for the other way round. ``also``
    are further names. Several values are given ``again`` and again or ``at_once``."""

    help: str = ""
    name: str = ""
    also: tuple[str, ...] = ()
    metavar: str | None = None
    several: Literal["", "again", "at_once"] = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)  # pydantic would ask lazy texts for hash and repr
class Setting:
    """A declared setting. :func:`settings_of` takes ``name`` and the fields after it from the field of the
    specification.

    ``limits`` are both included; of a text they count characters. ``most`` is the number of values it may have.
    ``body`` is its text in the OpenAPI document. ``who`` needs another value than the default. ``column`` is its title
    in a table.
    """

    limits: tuple[Any, Any] = (None, None)
    most: int | None = None
    form: Input | None = None
    flag: Flag | None = field(default=Flag())
    body: str = ""
    who: str = ""
    column: Text = ""
    name: str = ""
    kind: Any = None
    choices: tuple[str, ...] = ()
    many: bool = False
    optional: bool = False
    default: Any = None

    @property
    def input_name(self) -> str:
        """Its name on a form."""
        return self.form.name or self.name if self.form else self.name

    @property
    def option(self) -> str:
        """Its name among the options of a command, and in files."""
        return self.flag.name or self.name if self.flag else self.name

    @property
    def turned(self) -> bool:
        """Whether forms and commands ask for the opposite."""
        return self.kind is bool and {self.input_name, self.option} != {self.name}

    def check(self, value: Any) -> None:
        """Refuse a value that it cannot have.

        :raises Refused: ``setting_range`` for a number out of range, ``text_too_long``.
        :raises UnknownName: for something that is no choice.
        """
        low, high = self.limits
        if self.choices and value not in (*self.choices, self.default):
            raise UnknownName(self.name, str(value), list(self.choices))
        number = isinstance(value, int | float | Decimal)
        if high is not None and number and not (math.isfinite(value) and low <= value <= high):
            raise Refused("setting_range", field=self.name, low=low, high=high)
        if high is not None and isinstance(value, str) and len(value) > high:
            raise Refused("text_too_long", limit=high)


def setting(default: Any, **declared: Any) -> Any:
    """A field of a specification: its default, and the fields of :class:`Setting`."""
    info = Field(default)
    info.metadata.append(Setting(**declared))
    return info


class Spec(FrozenModel):
    """A specification, which refuses what its settings cannot have (:meth:`Setting.check`)."""

    @field_validator("*", mode="before")
    @classmethod
    def _check(cls, value: Any, info: ValidationInfo) -> Any:
        if one := settings_of(cls).get(info.field_name or ""):
            one.check(value)
        return value


@cache
def settings_of(model: type[BaseModel]) -> dict[str, Setting]:
    """The settings of a specification by name, its own before those of the classes it extends."""
    found = {}
    own = vars(model).get("__annotations__", {})
    for name, info in sorted(model.model_fields.items(), key=lambda item: item[0] not in own):
        for declared in (one for one in info.metadata if isinstance(one, Setting)):
            found[name] = _of_field(name, declared, info.annotation, info.default)
    return found


def _of_field(name: str, declared: Setting, annotation: Any, default: Any) -> Setting:
    types = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    kinds = [kind for kind in types if kind is not NoneType]
    many = get_origin(kinds[0]) is tuple
    kind = get_args(kinds[0])[0] if many else str if get_origin(kinds[0]) is Literal else kinds[0]
    choices = tuple(str(value) for each in kinds for value in _choices(each) if value != "")
    about = replace(declared, name=name, kind=kind, choices=choices, default=default)
    return replace(about, many=many, optional=NoneType in types)


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, Enum) else ()
