from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import Nugget, Status
from evaluation.judging.calls import JudgeDialog
from evaluation.judging.catalogue import families, family_named
from evaluation.judging.prompt import parse_reply
from evaluation.judging.rubric import (
    ANY_VALUE,
    NUMBER,
    TEXT,
    YES_NO,
    choice_schema,
    conforms,
    integer_schema,
    list_schema,
    object_schema,
)
from tests.evaluation.judging.families.scripted import before
from tests.evaluation.judging.samples import answer, delivered, question

OBJECT = object_schema({"reason": TEXT, "score": integer_schema([1, 2])})


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        ({"reason": "r", "score": 1}, OBJECT, True),
        ({"reason": "r"}, OBJECT, False),
        ({"reason": "r", "score": 1, "sure": 1}, OBJECT, False),
        ({"reason": None, "score": 1}, OBJECT, False),
        ({"reason": "r", "score": 3}, OBJECT, False),
        ({"reason": "r", "score": 1.0}, OBJECT, False),
        ({"reason": "r", "score": True}, OBJECT, False),  # true equals 1 in Python
        ([], OBJECT, False),
        ("a", choice_schema(["a", "b"]), True),
        ("c", choice_schema(["a", "b"]), False),
        ([], list_schema(TEXT), True),
        (["a", 1], list_schema(TEXT), False),
        (0.5, NUMBER, True),
        (1, NUMBER, True),
        (False, NUMBER, False),
        ("1", NUMBER, False),
        (True, YES_NO, True),
        (1, YES_NO, False),
        (None, ANY_VALUE, True),
        (None, {"type": "null"}, False),  # no schema of ours asks for it
    ],
)
def test_a_value_fits_its_shape_or_not(value: Any, schema: Any, fits: bool) -> None:
    assert conforms(value, schema) is fits


def members(schema: Any) -> set[str]:
    """Every keyword used anywhere in a schema."""
    if isinstance(schema, dict):
        inner = schema.get("properties", {}).values() if "properties" in schema else [schema.get("items")]
        return set(schema) | {word for part in inner for word in members(part)}
    return set()


NUGGETS = (Nugget(name="three years"), Nugget(name="a fee"))
NEGATIVE = {"category": "negative", "check": "should_not_hallucinate"}


def test_schemas_use_only_what_every_server_knows_and_leave_no_member_open() -> None:
    known = {"type", "properties", "required", "additionalProperties", "items", "enum"}
    wrong = []
    for family in families():
        ask = JudgeDialog(family_named(family).judge(before(family, question(nuggets=NUGGETS, **NEGATIVE)))).request
        if ask and (members(ask.schema) - known or ask.schema["required"] != list(ask.schema["properties"])):
            wrong.append((family, ask.schema))
    assert wrong == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(families()), st.data())
def test_whatever_a_judge_says_each_metric_gets_a_result_and_nothing_raises(family: str, data: st.DataObject) -> None:
    case = before(family, question(nuggets=NUGGETS, **NEGATIVE), answer("Three years.", ["Three years.", "A fee."]))
    talk = JudgeDialog(family_named(family).judge(case))
    for _ in range(10):
        if talk.request is None:
            break
        parts = st.fixed_dictionaries({name: json_values | fitting(part) for name, part in shapes(talk.request)})
        raw = data.draw(st.text(max_size=20) | parts.map(json.dumps))
        talk.advance(parse_reply(delivered(raw), talk.request))
    assert talk.request is None
    assert set(talk.results) == {spec.name for spec in family_named(family).produced_metrics}
    for result in talk.results.values():
        assert result.status is Status.SCORED or result.reason


def shapes(ask: Any) -> list[tuple[str, Any]]:
    return list(ask.schema["properties"].items())


def fitting(schema: Any) -> st.SearchStrategy[Any]:
    """Values of the shape."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(max_size=8),
        "number": st.floats(-1, 101),
        "boolean": st.booleans(),
    }
    if schema["type"] == "array":
        return st.lists(fitting(schema["items"]), max_size=3)
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: fitting(part) for name, part in schema["properties"].items()})
    return kinds[schema["type"]]
