"""Queue settings are declared once: REST, the command, the form, the table and the documentation follow."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.core.management import CommandParser
from django.utils.translation import override
from rest_framework import serializers

from evaluation.core.errors import DomainError, UnknownName
from evaluation.specs.flags import add_flags
from evaluation.specs.form_fields import form_fields
from evaluation.specs.setting import Setting
from review.management.options import add_queue_options, read_queue_spec
from review.models import ReviewQueue
from review.models.queue_spec import CONFIGURABLE_SETTINGS, SETTINGS, QueueSpec
from review.queues.serializers import QueueBody

ROOT = Path(__file__).resolve().parents[3]
DOCS = (ROOT / "docs" / "queues.md").read_text(encoding="utf-8")
HEAD = "| setting | default | range | on the form | when to change it |"
PRODUCT = ("contrib", "review", "evaluation", "config", "templates", "static")
each_setting = pytest.mark.parametrize("setting", CONFIGURABLE_SETTINGS, ids=lambda setting: setting.name)


def command_options(*arguments: str) -> dict[str, Any]:
    parser = CommandParser()
    add_flags(parser, [SETTINGS["size"]])
    add_queue_options(parser)
    return vars(parser.parse_args(arguments))


def enum_value(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


@each_setting
def test_rest_body_accepts_the_range_of_a_setting(setting: Setting) -> None:
    field: Any = QueueBody().fields[setting.name]
    assert enum_value(field.default) == enum_value(setting.default)
    assert field.allow_null == setting.optional
    if isinstance(setting.default, Enum):
        assert list(field.choices) == [value.value for value in setting.kind]
    elif setting.kind is str:
        assert field.max_length == setting.limits[1]
    elif setting.kind in {int, float}:
        assert (field.min_value, field.max_value) == setting.limits
    else:
        assert isinstance(field, serializers.BooleanField | serializers.DateTimeField)


@each_setting
def test_command_has_a_flag_with_the_default(setting: Setting) -> None:
    options = command_options()
    assert getattr(read_queue_spec(options), setting.name) == setting.default
    if setting.is_inverted:
        assert (
            getattr(read_queue_spec(command_options(f"--{setting.option.replace('_', '-')}")), setting.name)
            is not setting.default
        )


@pytest.mark.parametrize(
    "setting", [setting for setting in CONFIGURABLE_SETTINGS if setting.form], ids=lambda setting: setting.name
)
def test_form_starts_with_the_default_and_limits_the_range(setting: Setting) -> None:
    field: Any = form_fields([setting])[setting.input_name]
    factor = 100 if setting.form and setting.form.percent else 1
    if isinstance(field, forms.IntegerField) and setting.default is not None:
        assert float(field.initial) == pytest.approx(setting.default * factor)
    if isinstance(field, forms.IntegerField) and setting.limits[1] is not None:
        assert setting.limits[0] * factor <= field.min_value < field.max_value <= setting.limits[1] * factor
    if isinstance(field, forms.ChoiceField):
        assert field.initial == setting.default
        assert {value for value, _label in field.choices} == set(setting.kind)


@pytest.mark.parametrize(
    "setting", [setting for setting in SETTINGS.values() if setting.column], ids=lambda setting: setting.name
)
def test_table_column_has_the_default(setting: Setting) -> None:
    column = ReviewQueue._meta.get_field(setting.name)
    assert column.verbose_name == setting.column
    if setting.default not in ("", None):
        assert column.default == setting.default


@pytest.mark.parametrize(
    "setting",
    [setting for setting in CONFIGURABLE_SETTINGS if setting.kind in {int, float} and setting.limits[1] is not None],
)
def test_number_out_of_range_is_refused(setting: Setting) -> None:
    low, high = setting.limits
    for value in (low, high):
        assert getattr(QueueSpec(**{setting.name: value}), setting.name) == value
    for value in (low - 1, high + 1, float("nan")):
        with pytest.raises(DomainError) as error:
            QueueSpec(**{setting.name: value})
        assert error.value.params == {"field": setting.name, "low": low, "high": high}


@pytest.mark.parametrize(
    "setting",
    [setting for setting in CONFIGURABLE_SETTINGS if isinstance(setting.default, Enum)],
    ids=lambda setting: setting.name,
)
def test_unknown_choice_is_refused_with_the_choices(setting: Setting) -> None:
    with pytest.raises(UnknownName) as error:
        QueueSpec(**{setting.name: "by whim"})
    assert set(error.value.known) == {value.value for value in setting.kind}


def span(setting: Setting) -> str:
    """Range as text."""
    low, high = setting.limits
    if isinstance(setting.default, Enum):
        return ", ".join(f"`{value.value}`" for value in setting.kind)
    if setting.kind is str:
        return f"up to {high:,} characters"
    if high is None:
        return ""
    return f"{low:g} to {high:,.9g}" if high < 2**53 else f"from {low:g}"


def documentation_rows() -> list[str]:
    """Rows of the table in the documentation."""
    rows = []
    with override("en"):
        for setting in CONFIGURABLE_SETTINGS:
            default = "" if setting.default in ("", None) else f"`{enum_value(setting.default)}`"
            cells = (
                f"`{setting.name}`",
                default,
                span(setting),
                str(setting.form.label) if setting.form else "",
                setting.when,
            )
            rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return rows


def test_the_documentation_lists_every_setting() -> None:
    listed_rows = [line for line in DOCS.split(HEAD)[1].split("\n\n")[0].splitlines()[2:] if line]
    assert listed_rows == documentation_rows(), "paste these rows:\n" + "\n".join(documentation_rows())


def test_reveal_rule_is_used_in_four_files() -> None:
    settings = [setting for setting in CONFIGURABLE_SETTINGS if setting.name.startswith("reveal_")]
    names = {name for setting in settings for name in (setting.name, setting.input_name)}
    rule = re.compile(rf"\b({'|'.join(sorted(names))}|Reveal\.[A-Z_]+|queue\.reveal)\b")
    paths = (
        path for folder in PRODUCT for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".html", ".js"}
    )
    files = {path.relative_to(ROOT).as_posix() for path in paths if rule.search(path.read_text(encoding="utf-8"))}
    assert len(names) >= 3
    assert {name for name in files if "/migrations/" not in name} == {
        "review/models/queue_spec.py",  # what may be set, and what is said of it
        "review/models/queues.py",  # the columns
        "review/ratings/reveals.py",  # the rule itself
        "review/releases/services.py",  # pairs of releases never show the judge
    }
