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
from tests.evaluation.judging.families.scripted import make_case
from tests.evaluation.judging.samples import answer, ok_reply, question

OBJECT = object_schema({"reason": TEXT, "score": integer_schema([1, 2])})


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
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
def test_value_conforms_to_schema(value: Any, schema: Any, expected: bool) -> None:
    assert conforms(value, schema) is expected


def schema_keywords(schema: Any) -> set[str]:
    """All keywords used anywhere in a schema."""
    if isinstance(schema, dict):
        inner = schema.get("properties", {}).values() if "properties" in schema else [schema.get("items")]
        return set(schema) | {word for part in inner for word in schema_keywords(part)}
    return set()


NUGGETS = (Nugget(name="three years"), Nugget(name="a fee"))
NEGATIVE = {"category": "negative", "check": "should_not_hallucinate"}


def test_schemas_use_only_widely_supported_keywords() -> None:
    supported = {"type", "properties", "required", "additionalProperties", "items", "enum"}
    failures = []
    for family in families():
        request = JudgeDialog(
            family_named(family).judge(make_case(family, question(nuggets=NUGGETS, **NEGATIVE)))
        ).request
        if request and (
            schema_keywords(request.schema) - supported
            or request.schema["required"] != list(request.schema["properties"])
        ):
            failures.append((family, request.schema))
    assert failures == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(families()), st.data())
def test_any_reply_yields_a_result_for_each_metric(family: str, data: st.DataObject) -> None:
    case = make_case(family, question(nuggets=NUGGETS, **NEGATIVE), answer("Three years.", ["Three years.", "A fee."]))
    dialog = JudgeDialog(family_named(family).judge(case))
    for _ in range(10):
        if dialog.request is None:
            break
        parts = st.fixed_dictionaries(
            {name: json_values | matching_values(part) for name, part in reply_properties(dialog.request)}
        )
        raw = data.draw(st.text(max_size=20) | parts.map(json.dumps))
        dialog.advance(parse_reply(ok_reply(raw), dialog.request))
    assert dialog.request is None
    assert set(dialog.results) == {spec.name for spec in family_named(family).produced_metrics}
    for result in dialog.results.values():
        assert result.status is Status.SCORED or result.reason


def reply_properties(request: Any) -> list[tuple[str, Any]]:
    return list(request.schema["properties"].items())


def matching_values(schema: Any) -> st.SearchStrategy[Any]:
    """Strategy for values that match the schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(max_size=8),
        "number": st.floats(-1, 101),
        "boolean": st.booleans(),
    }
    if schema["type"] == "array":
        return st.lists(matching_values(schema["items"]), max_size=3)
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: matching_values(part) for name, part in schema["properties"].items()})
    return kinds[schema["type"]]
