"""The page of metrics is written from the registry and fresh."""

from __future__ import annotations

import re

from evaluation.management.metrics_page import PAGE, metrics_page
from evaluation.metric_packages.declared import declared_metrics

TEXT = PAGE.read_text(encoding="utf-8")


def test_page_matches_the_metric_registry() -> None:
    assert metrics_page() == TEXT, "stale: python -m evaluation.management.metrics_page"


def test_every_metric_section_is_complete() -> None:
    missing_lines = []
    for name, spec in declared_metrics().items():
        _, *sections = re.split(rf"^#+ `{name}`:", TEXT, flags=re.MULTILINE)
        assert (name, len(sections)) == (name, 1)
        section = sections[0].split("\n#")[0]
        expected_lines = [spec.formula.en, spec.formula.ko, f"| {spec.version} | {spec.source or 'ours'} |"]
        expected_lines += [f"| {spec.direction} |", *spec.inputs]
        missing_lines += [f"{name}: {text}" for text in expected_lines if text not in section]
    assert missing_lines == []
