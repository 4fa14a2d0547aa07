"""What the page of metrics says of each is what its declaration says: whoever changes one sees it in the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluation.core.registry import MetricSpec
from evaluation.embedding.similarity import EMBEDDING_METRICS
from evaluation.judging.catalogue import judge_metrics
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS

DECLARED = (
    *(metric.spec for metric in RULE_METRICS),
    *EMBEDDING_METRICS,
    *judge_metrics(),
    *(metric.spec for metric in DERIVED_METRICS),
    ANSWER_OVERALL,
)
PAGE = Path("docs/metrics.md").read_text(encoding="utf-8")
TITLES = dict(re.findall(r"^#+ `(\w+)`: (.+)$", PAGE, re.MULTILINE))


@pytest.mark.parametrize("spec", DECLARED, ids=lambda spec: str(spec.name))
def test_a_metric_stands_in_the_page_as_it_is_declared(spec: MetricSpec) -> None:
    assert TITLES[spec.name] == f"{spec.title.en} / {spec.title.ko}"
    section = re.split(rf"^#+ `{spec.name}`: .+$", PAGE, flags=re.MULTILINE)[1].split("\n#")[0]
    assert f"{spec.formula.en}.\n\n{spec.formula.ko}.\n" in section
    row = next(line for line in section.splitlines() if line.startswith("| ") and "range |" not in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1] == spec.direction
    assert cells[2] == (", ".join(spec.inputs) or "–")
    assert cells[3] == (", ".join(spec.optional_inputs) or "–")
    assert cells[5:7] == [str(spec.version), spec.source or "ours"]


def test_every_metric_of_the_page_is_declared_once() -> None:
    assert sorted(TITLES) == sorted(spec.name for spec in DECLARED)
