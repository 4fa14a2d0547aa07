"""Problems reported for YAML that is invalid or incomplete."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from evaluation.core.errors import InvalidFile
from evaluation.core.yaml_models import read_yaml


class NamedLimit(BaseModel):
    name: str
    most: int = 1


def test_invalid_yaml_reports_line_and_parser_message() -> None:
    with pytest.raises(InvalidFile) as error:
        read_yaml(NamedLimit, "name: one\nmost: [1, 2\n", "x.yaml", "thing")
    (problem,) = error.value.problems
    # the parser stops behind the second line, where it expected the end of the list
    assert (problem.code, problem.file, problem.line) == ("thing_not_yaml", "x.yaml", 3)
    assert problem.params["error"] == ("while parsing a flow sequence, did not find expected ',' or ']'")


def test_incomplete_model_reports_line_and_field() -> None:
    with pytest.raises(InvalidFile) as error:
        read_yaml(NamedLimit, "# a thing\nmost: many\n", "x.yaml", "thing")
    problems = {(problem.code, problem.line, problem.field) for problem in error.value.problems}
    assert problems == {("thing_invalid", None, "name"), ("thing_invalid", 2, "most")}


class NumberOrList(BaseModel):
    """A number or a list; pydantic reports an error for each member of the union."""

    many: int | list[int | bool]


def test_value_that_fits_no_union_member_reports_its_line() -> None:
    with pytest.raises(InvalidFile) as error:
        read_yaml(NumberOrList, "many:\n- 1\n- two\n", "x.yaml", "thing")
    lines = {problem.field: problem.line for problem in error.value.problems}
    assert lines["many.int"] == 1
    assert {line for field, line in lines.items() if field and field.startswith("many.list")} == {1}
