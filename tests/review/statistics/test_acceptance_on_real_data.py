"""Acceptance rule on public data: judges compared with each other, and sets too small for a hold-out test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from review.statistics.acceptance import (
    Claim,
    HoldoutShortage,
    LossComparison,
    holdout_shortage,
    is_accepted,
    residual_variances,
    squared_losses,
)
from review.statistics.gold_split import AnswerGroup, Split, split_groups


def read_jsonl(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def holdout_positions(groups: Sequence[str], labels: Sequence[float]) -> list[int]:
    """Positions that the gold split assigns to the hold-out; labels from 0 to 1."""
    labels_by_group: dict[str, list[float]] = {}
    for group, label in zip(groups, labels, strict=True):
        labels_by_group.setdefault(group, []).append(label)
    parts = split_groups(
        {
            name: AnswerGroup(len(group_labels), "", float(np.mean(group_labels)))
            for name, group_labels in labels_by_group.items()
        },
        seed=0,
    )
    return [place for place, group in enumerate(groups) if parts[group] is Split.HOLD_OUT]


def test_no_open_question_judge_is_shown_better_or_not_worse(sample_data: Path) -> None:
    rows = read_jsonl(sample_data, "openqa_nq301/items.jsonl")
    labels = [float(np.mean([v for v in row["human"]["annotators"] if v is not None])) for row in rows]
    holdout = holdout_positions([row["question_id"] for row in rows], labels)
    groups = [rows[place]["question_id"] for place in holdout]
    assert (len(holdout), len(set(groups)), holdout_shortage(groups)) == (366, 76, None)
    labels_in_holdout = [labels[place] for place in holdout]
    judges = ("gpt-4", "text-davinci-003", "bem")
    verdicts = {name: [rows[place]["judges"][name]["verdict"] for place in holdout] for name in judges}
    p_values: dict[tuple[str, str], float] = {}
    accepted_better, not_worse = [], []
    for candidate in judges:
        for baseline in (name for name in judges if name != candidate):
            active = squared_losses(verdicts[baseline], labels_in_holdout, 0.0)
            weights = np.ones(len(holdout))
            comparison = LossComparison(
                squared_losses(verdicts[candidate], labels_in_holdout, 1.0),
                active,
                active,
                weights,
                groups,
                [""] * len(holdout),
            )
            p_values[candidate, baseline] = comparison.p_better
            accepted_better += [(candidate, baseline)] * is_accepted({"correct": comparison}, 1)
            not_worse += [(candidate, baseline)] * is_accepted({"correct": comparison}, 1, Claim.NOT_WORSE)
    assert p_values["gpt-4", "text-davinci-003"] == pytest.approx(0.5220, abs=5e-5)
    assert p_values["gpt-4", "bem"] == pytest.approx(0.1965, abs=5e-5)
    assert (accepted_better, not_worse) == ([], [])


def test_sets_with_few_queries_or_documents_report_what_is_missing(sample_data: Path) -> None:
    rows = read_jsonl(sample_data, "llmjudge_dl23/judgements.jsonl")
    queries = [row["query_id"] for row in rows]
    holdout = holdout_positions(queries, [row["human"] / 3 for row in rows])
    # twelve queries give five or six to the hold-out
    assert holdout_shortage(queries[place] for place in holdout) == HoldoutShortage(groups=25, answers=0)
    assert holdout_shortage(queries) == HoldoutShortage(groups=18, answers=0)
    items = read_jsonl(sample_data, "summeval_human/items.jsonl")
    documents = [item["doc_id"] for item in items]
    holdout = holdout_positions(documents, [(float(np.mean(item["human"]["coherence"])) - 1) / 4 for item in items])
    assert holdout_shortage(documents[place] for place in holdout) == HoldoutShortage(groups=5, answers=0)


def test_prompt_with_lower_loss_but_lower_correlation_is_rejected(sample_data: Path) -> None:
    """Every third passage: TREMA-rubric0 has the lower loss (1.13 against 1.48) but also the lower correlation with the
    assessors (.22 against .37)."""
    rows = read_jsonl(sample_data, "llmjudge_dl23/judgements.jsonl")[::3]
    labels = [float(row["human"]) for row in rows]
    candidate_scores, active_scores = (
        [float(row["judges"][name]) for row in rows] for name in ("TREMA-rubric0", "TREMA-4prompts")
    )
    weights, groups = np.ones(len(rows)), list(range(len(rows)))
    active = squared_losses(active_scores, labels, 0.0)
    comparison = LossComparison(
        squared_losses(candidate_scores, labels, 9.0), active, active, weights, groups, [""] * len(rows)
    )
    assert (comparison.loss, float(np.mean(active))) == pytest.approx((1.134, 1.481), abs=1e-3)
    assert np.corrcoef(candidate_scores, labels)[0, 1] == pytest.approx(0.218, abs=1e-3)
    assert np.corrcoef(active_scores, labels)[0, 1] == pytest.approx(0.369, abs=1e-3)
    assert is_accepted({"relevance": comparison}, 1)
    residuals = residual_variances(labels, candidate_scores, active_scores, weights, groups)
    assert residuals is not None
    assert (residuals.candidate, residuals.active) == pytest.approx((0.7047, 0.6393), abs=1e-4)
    assert not is_accepted({"relevance": replace(comparison, residuals=residuals)}, 1)
