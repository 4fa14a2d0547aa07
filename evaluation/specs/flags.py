"""The flags of commands for settings, and the keys of files, which have the same names."""

from __future__ import annotations

import math
from argparse import Action, ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Annotated, Any, Literal, Protocol

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, create_model
from pydantic_core import PydanticCustomError

from evaluation.core.errors import Refused
from evaluation.messages.sentences import explain_refusal
from evaluation.specs.setting import Flag, Setting

_SEVERAL = BeforeValidator(lambda values: values if isinstance(values, list) else [values])


class _Parser(Protocol):
    """A parser, or a group of one."""

    def add_argument(self, *names: str, **how: Any) -> Action: ...


def add_flags(parser: _Parser, settings: Iterable[Setting]) -> list[Action]:
    """Add the flags of settings to a parser or a group of one."""
    return [_add(parser, one, one.flag) for one in settings if one.flag]


def _add(parser: _Parser, one: Setting, flag: Flag) -> Action:
    names = sorted((f"--{one.option.replace('_', '-')}", *flag.also), key=len)
    low, high = one.limits
    argument: dict[str, Any] = {"help": flag.help.format(low=low, high=high) or None}
    if one.kind is bool:
        argument |= {"action": "store_true"}
    elif flag.several:
        how = {"action": "append"} if flag.several == "again" else {"nargs": "+"}
        argument |= how | {"default": [], "metavar": flag.metavar}
    elif one.choices:
        argument |= {"choices": list(one.choices), "default": str(one.default)}
    else:
        argument |= {"type": partial(_value, one), "default": one.default, "metavar": flag.metavar}
    return parser.add_argument(*names, **argument)


def _value(one: Setting, text: str) -> Any:
    try:
        value = _READERS[one.kind](text)
        one.check(value)
    except Refused as refused:
        raise ArgumentTypeError(explain_refusal(refused)) from refused
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a whole number") from None
    return value


def values_of(settings: Iterable[Setting], options: Mapping[str, Any]) -> dict[str, Any]:
    """What options say of settings, by the fields of the specification."""
    named = ((one, options[one.option]) for one in settings if one.flag)
    return {one.name: not value if one.turned else value for one, value in named}


def file_model(name: str, actions: Iterable[Action]) -> type[BaseModel]:
    """The model of a file whose keys are the options of a command, read as its flags are. Each may be left out."""
    fields: dict[str, Any] = {action.dest: (_key(action) | None, None) for action in actions}
    return create_model(name, __config__=ConfigDict(frozen=True, extra="forbid"), **fields)


def _key(action: Action) -> Any:
    if action.nargs == 0:
        return bool
    if action.choices:
        return Literal[tuple(action.choices)]
    value = Annotated[Any, AfterValidator(partial(_read, action.type or str))]
    return Annotated[tuple[value, ...], _SEVERAL] if isinstance(action.default, list) else value


def _read(reader: Callable[[str], Any], value: Any) -> Any:
    """:raises PydanticCustomError: where the flag would refuse the value."""
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("option", "{reason}", {"reason": "a text or a number is expected"})
    try:
        return reader(str(value))
    except ArgumentTypeError as error:
        raise PydanticCustomError("option", "{reason}", {"reason": str(error)}) from error


def number(text: str) -> float:
    """A number that a flag gives.

    :raises ArgumentTypeError: for a text that is none, and for an infinite one.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text} is not a number")
    return value


def dollars(text: str) -> Decimal:
    """An amount of money on the command line.

    :raises ArgumentTypeError: for anything but a number from 0 on with at most 8 digits before the point.
    """
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount < 10**8:
        raise ArgumentTypeError(_("not an amount of US dollars, such as 2.50"))
    return amount.quantize(Decimal("0.0001"))


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise ArgumentTypeError(f"{text} is not a date and time such as 2026-12-01T18:00")
    moment = moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    if moment <= timezone.now():
        raise ArgumentTypeError(f"{text} is in the past")
    return moment


_READERS: Mapping[Any, Callable[[str], Any]] = {
    float: number,
    int: int,
    str: str,
    datetime: _moment,
    Decimal: dollars,
}
