"""The page of metrics is written from the registry and fresh."""

from __future__ import annotations

import re

from evaluation.judges.shipped import declared_metrics
from evaluation.management.metrics_page import PAGE, metrics_page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_the_registry_says_now() -> None:
    assert metrics_page() == TEXT, "stale: python -m evaluation.management.metrics_page"


def test_every_metric_has_its_section_with_formula_range_direction_inputs_version_and_source() -> None:
    missing = []
    for name, spec in declared_metrics().items():
        _, *sections = re.split(rf"^#+ `{name}`:", TEXT, flags=re.MULTILINE)
        assert (name, len(sections)) == (name, 1)
        section = sections[0].split("\n#")[0]
        wanted = [f"{spec.formula.en}.", f"{spec.formula.ko}.", f"| {spec.version} | {spec.source or 'ours'} |"]
        wanted += [f"| {spec.direction} |", *spec.inputs]
        missing += [f"{name}: {text}" for text in wanted if text not in section]
    assert missing == []
