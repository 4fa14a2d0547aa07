"""The figures of docs/baseline.md are what its command prints, in both languages (folder ``ragtruth_qa``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.studies.ragtruth import TABLES, JudgedDataset, constant, load_dataset

PAGE = (Path(__file__).parents[2] / "docs" / "baseline.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def judged_dataset(sample_data: Path) -> JudgedDataset:
    return load_dataset(sample_data / "ragtruth_qa")


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("index", [1, 2], ids=["en", "ko"])
def test_tables_match_command_output(name: str, index: int, judged_dataset: JudgedDataset) -> None:
    printed = PAGE.split(f"<!-- table: {name} -->\n")[index].split("\n\n")[0]
    assert printed == "\n".join(TABLES[name](judged_dataset))


@pytest.mark.slow
def test_human_labels_match_reference_values(sample_data: Path, judged_dataset: JudgedDataset) -> None:
    expected = json.loads((sample_data / "reference_values.json").read_text("utf-8"))["ragtruth_qa"]["hallucinated"]
    assert judged_dataset.grounded.count(0.0) == expected["count"]
    assert constant(judged_dataset).statistics["exact"].value == pytest.approx(1 - expected["rate"], abs=1e-6)
