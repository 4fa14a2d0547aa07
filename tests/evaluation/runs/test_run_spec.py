"""An option of a run is declared once: every entrance takes the same values and begins with the same default."""

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

EVERY = [*ASK_OPTIONS.values(), *RUN_OPTIONS.values()]
each = pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
NUMBERS = [one for one in EVERY if one.kind is int]


def parsed(*arguments: str) -> dict[str, Any]:
    parser = CommandParser(called_from_command_line=True)
    add_flags(parser, EVERY)
    return vars(parser.parse_args(arguments))


@each
def test_the_rest_body_begins_with_its_default(one: Setting) -> None:
    field: Any = RunRequestSerializer().fields[one.name]
    assert field.default == (list if one.many else one.default)
    assert field.allow_null == one.optional
    if one.choices:
        assert list(field.choices) == list(one.choices)
    if one.kind is int:
        assert (field.min_value, field.max_value) == one.limits


def test_a_command_without_flags_means_the_defaults() -> None:
    options = parsed()
    assert options.pop("judge") == []  # several may be named, of which the first counts
    spec = RunSpec(**option_values([one for one in RUN_OPTIONS.values() if one.name != "judge"], options))
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
    assert option_values(EVERY, parsed(*arguments))[name] == value


@pytest.mark.parametrize("one", NUMBERS, ids=lambda one: one.name)
def test_a_number_out_of_range_is_refused_by_flag_and_specification(
    one: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    low, high = one.limits
    flag = f"--{one.option.replace('_', '-')}"
    assert option_values([one], parsed(flag, str(high))) == {one.name: high}
    for value in (low - 1, high + 1):
        with pytest.raises(SystemExit):
            parsed(f"{flag}={value}")
        assert f"between {low} and {high}" in capsys.readouterr().err
        with pytest.raises(DomainError, match="setting_range"):
            (RunSpec if one.name in RUN_OPTIONS else AskSpec)(**{one.name: value})


@pytest.mark.parametrize("one", [one for one in EVERY if one.form], ids=lambda one: one.name)
def test_the_form_knows_no_value_out_of_range(one: Setting) -> None:
    field: Any = form_fields([one])[one.input_name]
    if isinstance(field, forms.IntegerField) and not isinstance(field, forms.DecimalField):
        assert (field.min_value, field.max_value) == one.limits
    if one.form and one.form.rows:
        assert isinstance(field, forms.MultipleChoiceField) == one.many


def test_a_run_keeps_what_it_was_asked_for_by_the_same_declarations() -> None:
    for name in (*ASK_OPTIONS, *CallSpec.model_fields):
        assert RunConfig().model_dump()[name] == (ASK_OPTIONS | RUN_OPTIONS)[name].default
    with pytest.raises(DomainError, match="setting_range"):
        RunConfig(repeat=51)


@pytest.mark.parametrize("text", ["nan", "snan", "inf", "-1", "100000000", "two"])
def test_a_budget_that_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        dollars(text)


@pytest.mark.parametrize("budget", [Decimal(-1), Decimal("nan"), Decimal(100_000_000)])
def test_a_specification_refuses_a_budget_out_of_range(budget: Decimal) -> None:
    with pytest.raises(DomainError, match="setting_range"):
        RunSpec(budget=budget)
