"""A setting of a queue is declared once: everything that asks for it, refuses it or tells of it follows."""

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
from review.models.queue_spec import ASKED_SETTINGS, SETTINGS, QueueSpec
from review.queues.serializers import QueueBody

ROOT = Path(__file__).resolve().parents[3]
DOCS = (ROOT / "docs" / "queues.md").read_text(encoding="utf-8")
HEAD = "| setting | default | range | on the form | who needs another value |"
PRODUCT = ("contrib", "review", "evaluation", "config", "templates", "static")
asked = pytest.mark.parametrize("one", ASKED_SETTINGS, ids=lambda one: one.name)


def command_says(*arguments: str) -> dict[str, Any]:
    parser = CommandParser()
    add_flags(parser, [SETTINGS["size"]])
    add_queue_options(parser)
    return vars(parser.parse_args(arguments))


def of_enum(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


@asked
def test_the_rest_body_takes_it_within_its_range(one: Setting) -> None:
    field: Any = QueueBody().fields[one.name]
    assert of_enum(field.default) == of_enum(one.default)
    assert field.allow_null == one.optional
    if isinstance(one.default, Enum):
        assert list(field.choices) == [value.value for value in one.kind]
    elif one.kind is str:
        assert field.max_length == one.limits[1]
    elif one.kind in {int, float}:
        assert (field.min_value, field.max_value) == one.limits
    else:
        assert isinstance(field, serializers.BooleanField | serializers.DateTimeField)


@asked
def test_the_command_has_a_flag_for_it_with_its_default(one: Setting) -> None:
    said = command_says()
    assert getattr(read_queue_spec(said), one.name) == one.default
    if one.is_inverted:
        assert getattr(read_queue_spec(command_says(f"--{one.option.replace('_', '-')}")), one.name) is not one.default


@pytest.mark.parametrize("one", [one for one in ASKED_SETTINGS if one.form], ids=lambda one: one.name)
def test_the_form_begins_with_its_default_and_knows_no_value_out_of_range(one: Setting) -> None:
    field: Any = form_fields([one])[one.input_name]
    by = 100 if one.form and one.form.percent else 1
    if isinstance(field, forms.IntegerField) and one.default is not None:
        assert float(field.initial) == pytest.approx(one.default * by)
    if isinstance(field, forms.IntegerField) and one.limits[1] is not None:
        assert one.limits[0] * by <= field.min_value < field.max_value <= one.limits[1] * by
    if isinstance(field, forms.ChoiceField):
        assert field.initial == one.default
        assert {value for value, _label in field.choices} == set(one.kind)


@pytest.mark.parametrize("one", [one for one in SETTINGS.values() if one.column], ids=lambda one: one.name)
def test_the_table_begins_with_its_default_too(one: Setting) -> None:
    column = ReviewQueue._meta.get_field(one.name)
    assert column.verbose_name == one.column
    if one.default not in ("", None):
        assert column.default == one.default


@pytest.mark.parametrize(
    "one", [one for one in ASKED_SETTINGS if one.kind in {int, float} and one.limits[1] is not None]
)
def test_a_number_out_of_range_is_refused(one: Setting) -> None:
    low, high = one.limits
    for value in (low, high):
        assert getattr(QueueSpec(**{one.name: value}), one.name) == value
    for value in (low - 1, high + 1, float("nan")):
        with pytest.raises(DomainError) as refused:
            QueueSpec(**{one.name: value})
        assert refused.value.params == {"field": one.name, "low": low, "high": high}


@pytest.mark.parametrize(
    "one", [one for one in ASKED_SETTINGS if isinstance(one.default, Enum)], ids=lambda one: one.name
)
def test_what_is_no_choice_is_refused_with_the_choices(one: Setting) -> None:
    with pytest.raises(UnknownName) as unknown:
        QueueSpec(**{one.name: "by whim"})
    assert set(unknown.value.known) == {value.value for value in one.kind}


def span(one: Setting) -> str:
    """The range in words."""
    low, high = one.limits
    if isinstance(one.default, Enum):
        return ", ".join(f"`{value.value}`" for value in one.kind)
    if one.kind is str:
        return f"up to {high:,} characters"
    if high is None:
        return ""
    return f"{low:g} to {high:,.9g}" if high < 2**53 else f"from {low:g}"


def table() -> list[str]:
    """The rows of the table in the documentation."""
    rows = []
    with override("en"):
        for one in ASKED_SETTINGS:
            default = "" if one.default in ("", None) else f"`{of_enum(one.default)}`"
            cells = (f"`{one.name}`", default, span(one), str(one.form.label) if one.form else "", one.who)
            rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return rows


def test_the_documentation_lists_every_setting() -> None:
    written = [line for line in DOCS.split(HEAD)[1].split("\n\n")[0].splitlines()[2:] if line]
    assert written == table(), "paste these rows:\n" + "\n".join(table())


def test_the_reveal_rule_is_declared_kept_and_applied_in_three_files() -> None:
    settings = [one for one in ASKED_SETTINGS if one.name.startswith("reveal_")]
    names = {name for one in settings for name in (one.name, one.input_name)}
    rule = re.compile(rf"\b({'|'.join(sorted(names))}|Reveal\.[A-Z_]+|queue\.reveal)\b")
    paths = (
        path for folder in PRODUCT for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".html", ".js"}
    )
    found = {path.relative_to(ROOT).as_posix() for path in paths if rule.search(path.read_text(encoding="utf-8"))}
    assert len(names) >= 3
    assert {name for name in found if "/migrations/" not in name} == {
        "review/models/queue_spec.py",  # what may be set, and what is said of it
        "review/models/queues.py",  # the columns
        "review/ratings/reveals.py",  # the rule itself
    }
