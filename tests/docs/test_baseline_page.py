"""The figures of docs/baseline.md are what its command prints, in both languages (folder ``ragtruth_qa``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.studies.ragtruth import TABLES, Judged, constant, read

PAGE = (Path(__file__).parents[2] / "docs" / "baseline.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def found(sample_data: Path) -> Judged:
    return read(sample_data / "ragtruth_qa")


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("place", [1, 2], ids=["en", "ko"])
def test_the_tables_are_what_the_command_prints(name: str, place: int, found: Judged) -> None:
    printed = PAGE.split(f"<!-- table: {name} -->\n")[place].split("\n\n")[0]
    assert printed == "\n".join(TABLES[name](found))


@pytest.mark.slow
def test_the_human_labels_are_those_of_the_reference_values(sample_data: Path, found: Judged) -> None:
    expected = json.loads((sample_data / "reference_values.json").read_text("utf-8"))["ragtruth_qa"]["hallucinated"]
    assert found.grounded.count(0.0) == expected["count"]
    assert constant(found).statistics["exact"].value == pytest.approx(1 - expected["rate"], abs=1e-6)
