"""Patterns and cross diagnosis of the generation profile."""

from __future__ import annotations

import pytest

from evaluation.profiles.arithmetic import cell_of
from evaluation.profiles.spec import DiagnosisTable, shipped_profiles

PATTERNS, DIAGNOSIS = next(p for p in shipped_profiles() if p.name == "generation").tables
FAITH, REL, RECALL = "generation_faithfulness", "answer_relevancy", "recall_at_k"


@pytest.mark.parametrize(
    ("faithfulness", "relevancy", "name"),
    [
        (0.6, 0.6, "sound"),  # at least good is high
        (0.59, 0.9, "hallucination_risk"),
        (0.9, 0.59, "wrong_passages"),
        (0.1, 0.2, "broken"),
        (0.6 - 1e-12, 0.9, "sound"),
    ],
)
def test_pattern_by_faithfulness_and_relevancy(faithfulness: float, relevancy: float, name: str) -> None:
    cell = cell_of(PATTERNS, {FAITH: faithfulness, REL: relevancy})
    assert cell is not None
    assert cell.name == name


@pytest.mark.parametrize(
    ("recall", "faithfulness", "relevancy", "name"),
    [
        (0.9, 0.9, 0.9, "healthy"),
        (0.9, 0.9, 0.1, "generation_stage"),
        (0.1, 0.9, 0.9, "own_knowledge"),
        (0.1, 0.1, 0.9, "retrieval_stage"),
    ],
)
def test_cross_diagnosis_by_recall_faithfulness_and_relevancy(
    recall: float, faithfulness: float, relevancy: float, name: str
) -> None:
    cell = cell_of(DIAGNOSIS, {RECALL: recall, FAITH: faithfulness, REL: relevancy})
    assert cell is not None
    assert cell.name == name


def test_missing_values_give_no_cell_unless_irrelevant() -> None:
    assert cell_of(PATTERNS, {FAITH: 0.9, REL: None}) is None
    assert cell_of(DIAGNOSIS, {RECALL: 0.9, FAITH: 0.1, REL: None}) is not None  # generation is low already


def test_diagnosis_table_needs_every_combination_once() -> None:
    with pytest.raises(ValueError, match="each combination"):
        DiagnosisTable.model_validate({**PATTERNS.model_dump(), "cells": PATTERNS.model_dump()["cells"][:3]})
