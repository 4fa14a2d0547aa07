"""Run options are declared once: REST, command line, form and specification share values and defaults."""

from __future__ import annotations

from argparse import ArgumentTypeError
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.core.management import CommandParser

from evaluation.core.errors import DomainError
from evaluation.models.run_spec import ASK_OPTIONS, RUN_OPTIONS, AskSpec, CallSpec, RunSpec
from evaluation.runs.api import RunRequestSerializer
from evaluation.specs.flags import add_flags, dollars, option_values
from evaluation.specs.form_fields import form_fields
from evaluation.specs.setting import Setting
from evaluation.worker.lifecycle import RunConfig

ALL_OPTIONS = [*ASK_OPTIONS.values(), *RUN_OPTIONS.values()]
each_option = pytest.mark.parametrize("option", ALL_OPTIONS, ids=lambda option: option.name)
INTEGER_OPTIONS = [option for option in ALL_OPTIONS if option.kind is int]


def parse_arguments(*arguments: str) -> dict[str, Any]:
    parser = CommandParser(called_from_command_line=True)
    add_flags(parser, ALL_OPTIONS)
    return vars(parser.parse_args(arguments))


@each_option
def test_rest_field_has_the_declared_default_and_limits(option: Setting) -> None:
    field: Any = RunRequestSerializer().fields[option.name]
    assert field.default == (list if option.many else option.default)
    assert field.allow_null == option.optional
    if option.choices:
        assert list(field.choices) == list(option.choices)
    if option.kind is int:
        assert (field.min_value, field.max_value) == option.limits


def test_command_without_flags_uses_the_defaults() -> None:
    options = parse_arguments()
    assert options.pop("judge") == []  # several may be named, of which the first counts
    spec = RunSpec(**option_values([option for option in RUN_OPTIONS.values() if option.name != "judge"], options))
    assert spec == RunSpec()


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--no-cache"], "use_cache", False),
        (["--no-baseline"], "baseline", False),
        (["--batch"], "batch", True),
        (["--category", "a", "--category", "b"], "categories", ["a", "b"]),
        (["--ids", "q1", "q2"], "question_ids", ["q1", "q2"]),
        (["-k", "7"], "k", 7),
        (["-t", "retrieval_only"], "evaluation_type", "retrieval_only"),
    ],
)
def test_a_flag_sets_the_option_of_its_name(arguments: list[str], name: str, value: Any) -> None:
    assert option_values(ALL_OPTIONS, parse_arguments(*arguments))[name] == value


@pytest.mark.parametrize("option", INTEGER_OPTIONS, ids=lambda option: option.name)
def test_number_out_of_range_is_refused_by_flag_and_spec(option: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    low, high = option.limits
    flag = f"--{option.option.replace('_', '-')}"
    assert option_values([option], parse_arguments(flag, str(high))) == {option.name: high}
    for value in (low - 1, high + 1):
        with pytest.raises(SystemExit):
            parse_arguments(f"{flag}={value}")
        assert f"between {low} and {high}" in capsys.readouterr().err
        with pytest.raises(DomainError, match="setting_range"):
            (RunSpec if option.name in RUN_OPTIONS else AskSpec)(**{option.name: value})


@pytest.mark.parametrize("option", [option for option in ALL_OPTIONS if option.form], ids=lambda option: option.name)
def test_form_field_has_the_declared_limits(option: Setting) -> None:
    field: Any = form_fields([option])[option.input_name]
    if isinstance(field, forms.IntegerField) and not isinstance(field, forms.DecimalField):
        assert (field.min_value, field.max_value) == option.limits
    if option.form and option.form.rows:
        assert isinstance(field, forms.MultipleChoiceField) == option.many


def test_run_config_has_the_declared_defaults_and_limits() -> None:
    for name in (*ASK_OPTIONS, *CallSpec.model_fields):
        assert RunConfig().model_dump()[name] == (ASK_OPTIONS | RUN_OPTIONS)[name].default
    with pytest.raises(DomainError, match="setting_range"):
        RunConfig(repeat=51)


@pytest.mark.parametrize("text", ["nan", "snan", "inf", "-1", "100000000", "two"])
def test_budget_that_is_not_an_amount_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        dollars(text)


@pytest.mark.parametrize("budget", [Decimal(-1), Decimal("nan"), Decimal(100_000_000)])
def test_a_specification_refuses_a_budget_out_of_range(budget: Decimal) -> None:
    with pytest.raises(DomainError, match="setting_range"):
        RunSpec(budget=budget)
