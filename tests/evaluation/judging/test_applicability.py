from __future__ import annotations

import pytest

from evaluation.judging.catalogue import family_named
from evaluation.judging.prechecks import applicability
from tests.evaluation.judging.samples import ALL, answer, question

SPECS = family_named("answer_quality").produced_metrics


def test_all_metrics_apply_with_reference_and_contexts() -> None:
    assert applicability(SPECS, question(), answer()).metrics == ALL


def test_without_reference_and_keywords_only_faithfulness_applies() -> None:
    parts = applicability(SPECS, question(references=()), answer())
    assert parts.metrics == ("faithfulness",)
    assert {name: result.reason for name, result in parts.not_applicable.items()} == {
        "correctness": "no_reference",
        "completeness": "no_reference",
    }


def test_expected_keywords_replace_a_missing_reference() -> None:
    parts = applicability(SPECS, question(references=(), keywords=(("three",),)), answer())
    assert parts.metrics == ALL


@pytest.mark.parametrize(("contexts", "applies"), [(None, False), ((), True), (("",), True)])
def test_faithfulness_applies_to_retrieving_systems_even_with_empty_retrieval(
    contexts: tuple[str, ...] | None, applies: bool
) -> None:
    parts = applicability(SPECS, question(), answer(contexts=contexts))
    assert ("faithfulness" in parts.metrics) is applies
    if not applies:
        assert parts.not_applicable["faithfulness"].reason == "does_not_retrieve"
