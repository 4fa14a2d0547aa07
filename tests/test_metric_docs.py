"""The page of metrics is written from the registry and fresh."""

from __future__ import annotations

import re

import pytest

from evaluation.judges.definitions import declared
from evaluation.management.documenting import PAGE, page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_the_registry_says_now() -> None:
    assert page() == TEXT, "stale: python -m evaluation.management.documenting"


@pytest.mark.parametrize("name", declared())
def test_every_metric_has_its_section_with_formula_range_direction_inputs_version_and_source(name: str) -> None:
    spec = declared()[name]
    assert len(re.findall(rf"^#+ `{name}`:", TEXT, re.MULTILINE)) == 1
    section = re.split(rf"^#+ `{name}`:", TEXT, maxsplit=1, flags=re.MULTILINE)[1].split("\n#")[0]
    assert f"{spec.formula.en}." in section
    assert f"{spec.formula.ko}." in section
    assert f"| {spec.version} | {spec.source or 'ours'} |" in section
    assert f"| {spec.direction} |" in section
    assert all(needed in section for needed in spec.inputs)
