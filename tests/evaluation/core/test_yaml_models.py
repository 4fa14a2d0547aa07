"""What a text in YAML that cannot be read, or says too little, is told."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from evaluation.core.errors import InvalidFile
from evaluation.core.yaml_models import read_yaml


class Described(BaseModel):
    """A name, and how many."""

    name: str
    most: int = 1


def test_a_text_that_is_no_yaml_names_its_line_and_what_the_parser_says() -> None:
    with pytest.raises(InvalidFile) as refused:
        read_yaml(Described, "name: one\nmost: [1, 2\n", "x.yaml", "thing")
    (problem,) = refused.value.problems
    # the parser stops behind the second line, where it expected the end of the list
    assert (problem.code, problem.file, problem.line) == ("thing_not_yaml", "x.yaml", 3)
    assert problem.params["error"] == ("while parsing a flow sequence, did not find expected ',' or ']'")


def test_a_description_that_says_too_little_names_line_and_field() -> None:
    with pytest.raises(InvalidFile) as refused:
        read_yaml(Described, "# a thing\nmost: many\n", "x.yaml", "thing")
    told = {(problem.code, problem.line, problem.field) for problem in refused.value.problems}
    assert told == {("thing_invalid", None, "name"), ("thing_invalid", 2, "most")}


class Either(BaseModel):
    """A number, or numbers; pydantic tells of each way a value could have been read in."""

    many: int | list[int | bool]


def test_what_fits_none_of_several_ways_names_the_line_of_what_is_there() -> None:
    with pytest.raises(InvalidFile) as refused:
        read_yaml(Either, "many:\n- 1\n- two\n", "x.yaml", "thing")
    lines = {problem.field: problem.line for problem in refused.value.problems}
    assert lines["many.int"] == 1
    assert {line for field, line in lines.items() if field and field.startswith("many.list")} == {1}
