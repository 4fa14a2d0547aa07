"""Command-line flags and file keys of settings; both have the same names."""

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

from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.specs.setting import Flag, Setting

_SEVERAL = BeforeValidator(lambda values: values if isinstance(values, list) else [values])


class _Parser(Protocol):
    def add_argument(self, *names: str, **how: Any) -> Action: ...


def add_flags(parser: _Parser, settings: Iterable[Setting]) -> list[Action]:
    """Add the flags of settings to a parser or group."""
    return [_add_flag(parser, setting, setting.flag) for setting in settings if setting.flag]


def _add_flag(parser: _Parser, setting: Setting, flag: Flag) -> Action:
    names = sorted((f"--{setting.option.replace('_', '-')}", *flag.also), key=len)
    low, high = setting.limits
    argument: dict[str, Any] = {"help": flag.help.format(low=low, high=high) or None}
    if setting.kind is bool:
        argument |= {"action": "store_true"}
    elif flag.several:
        several_options = {"action": "append"} if flag.several == "again" else {"nargs": "+"}
        argument |= several_options | {"default": [], "metavar": flag.metavar}
    elif setting.choices:
        argument |= {"choices": list(setting.choices), "default": str(setting.default)}
    else:
        argument |= {"type": partial(_value, setting), "default": setting.default, "metavar": flag.metavar}
    return parser.add_argument(*names, **argument)


def _value(setting: Setting, text: str) -> Any:
    try:
        value = _READERS[setting.kind](text)
        setting.check(value)
    except DomainError as refusal:
        raise ArgumentTypeError(explain_refusal(refusal)) from refusal
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a whole number") from None
    return value


def option_values(settings: Iterable[Setting], options: Mapping[str, Any]) -> dict[str, Any]:
    """The values of settings from command options, by the fields of the specification."""
    options_by_setting = ((setting, options[setting.option]) for setting in settings if setting.flag)
    return {setting.name: not value if setting.is_inverted else value for setting, value in options_by_setting}


def file_model(name: str, actions: Iterable[Action]) -> type[BaseModel]:
    """The model of a file whose keys are the options of a command, parsed like its flags. All keys are optional."""
    fields: dict[str, Any] = {action.dest: (_file_key(action) | None, None) for action in actions}
    return create_model(name, __config__=ConfigDict(frozen=True, extra="forbid"), **fields)


def _file_key(action: Action) -> Any:
    if action.nargs == 0:
        return bool
    if action.choices:
        return Literal[tuple(action.choices)]
    value = Annotated[Any, AfterValidator(partial(_read_option, action.type or str))]
    return Annotated[tuple[value, ...], _SEVERAL] if isinstance(action.default, list) else value


def _read_option(reader: Callable[[str], Any], value: Any) -> Any:
    """Parse a file value like a flag.

    :raises PydanticCustomError: if the flag would refuse the value."""
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("option", "{reason}", {"reason": "a text or a number is expected"})
    try:
        return reader(str(value))
    except ArgumentTypeError as error:
        raise PydanticCustomError("option", "{reason}", {"reason": str(error)}) from error


def number(text: str) -> float:
    """Parse a finite number.

    :raises ArgumentTypeError: for other texts."""
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text} is not a number")
    return value


def whole_number(high: int = 2**63 - 1) -> Callable[[str], int]:
    """Return an argument type for whole numbers from 0 to ``high``."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = -1
        if not 0 <= value <= high:
            raise ArgumentTypeError(f"{text} is not a whole number from 0 to {high}")
        return value

    return parse


def dollars(text: str) -> Decimal:
    """Parse an amount of US dollars.

    :raises ArgumentTypeError: for anything but a number from 0 with at most 8 digits before the point."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount < 10**8:
        raise ArgumentTypeError(_("not a US dollar amount such as 2.50"))
    return amount.quantize(Decimal("0.0001"))


def _future_time(text: str) -> datetime:
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
    datetime: _future_time,
    Decimal: dollars,
}
