"""The rule on public data: judges of one set held against each other, and sets that are too small for a look."""

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


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def held_out(groups: Sequence[str], labels: Sequence[float]) -> list[int]:
    """The places that the split of a gold set gives to the hold-out; labels from 0 to 1."""
    several: dict[str, list[float]] = {}
    for group, label in zip(groups, labels, strict=True):
        several.setdefault(group, []).append(label)
    parts = split_groups({name: AnswerGroup(len(of), "", float(np.mean(of))) for name, of in several.items()}, seed=0)
    return [place for place, group in enumerate(groups) if parts[group] is Split.HOLD_OUT]


def test_of_three_judges_of_open_questions_none_is_shown_better_or_not_worse(sample_data: Path) -> None:
    rows = read(sample_data, "openqa_nq301/items.jsonl")
    labels = [float(np.mean([v for v in row["human"]["annotators"] if v is not None])) for row in rows]
    kept = held_out([row["question_id"] for row in rows], labels)
    groups = [rows[place]["question_id"] for place in kept]
    assert (len(kept), len(set(groups)), holdout_shortage(groups)) == (366, 76, None)
    right = [labels[place] for place in kept]
    judges = ("gpt-4", "text-davinci-003", "bem")
    said = {name: [rows[place]["judges"][name]["verdict"] for place in kept] for name in judges}
    p_values: dict[tuple[str, str], float] = {}
    better, not_worse = [], []
    for ours in judges:
        for theirs in (name for name in judges if name != ours):
            active = squared_losses(said[theirs], right, 0.0)
            ones = np.ones(len(kept))
            one = LossComparison(squared_losses(said[ours], right, 1.0), active, active, ones, groups, [""] * len(kept))
            p_values[ours, theirs] = one.p_better
            better += [(ours, theirs)] * is_accepted({"correct": one}, 1)
            not_worse += [(ours, theirs)] * is_accepted({"correct": one}, 1, Claim.NOT_WORSE)
    assert p_values["gpt-4", "text-davinci-003"] == pytest.approx(0.5220, abs=5e-5)
    assert p_values["gpt-4", "bem"] == pytest.approx(0.1965, abs=5e-5)
    assert (better, not_worse) == ([], [])


def test_sets_of_few_queries_or_documents_are_refused_with_what_is_missing(sample_data: Path) -> None:
    rows = read(sample_data, "llmjudge_dl23/judgements.jsonl")
    queries = [row["query_id"] for row in rows]
    kept = held_out(queries, [row["human"] / 3 for row in rows])
    # twelve queries give five or six to the hold-out
    assert holdout_shortage(queries[place] for place in kept) == HoldoutShortage(groups=25, answers=0)
    assert holdout_shortage(queries) == HoldoutShortage(groups=18, answers=0)
    items = read(sample_data, "summeval_human/items.jsonl")
    documents = [item["doc_id"] for item in items]
    kept = held_out(documents, [(float(np.mean(item["human"]["coherence"])) - 1) / 4 for item in items])
    assert holdout_shortage(documents[place] for place in kept) == HoldoutShortage(groups=5, answers=0)


def test_a_real_prompt_with_lower_loss_and_lower_correlation_is_not_accepted(sample_data: Path) -> None:
    """Every third passage by itself: TREMA-rubric0 has the lower loss (1.13, 1.48) and the lower correlation with
    the assessors (.22 against .37)."""
    rows = read(sample_data, "llmjudge_dl23/judgements.jsonl")[::3]
    labels = [float(row["human"]) for row in rows]
    ours, theirs = ([float(row["judges"][name]) for row in rows] for name in ("TREMA-rubric0", "TREMA-4prompts"))
    ones, groups = np.ones(len(rows)), list(range(len(rows)))
    active = squared_losses(theirs, labels, 0.0)
    one = LossComparison(squared_losses(ours, labels, 9.0), active, active, ones, groups, [""] * len(rows))
    assert (one.loss, float(np.mean(active))) == pytest.approx((1.134, 1.481), abs=1e-3)
    assert np.corrcoef(ours, labels)[0, 1] == pytest.approx(0.218, abs=1e-3)
    assert np.corrcoef(theirs, labels)[0, 1] == pytest.approx(0.369, abs=1e-3)
    assert is_accepted({"relevance": one}, 1)
    residuals = residual_variances(labels, ours, theirs, ones, groups)
    assert residuals is not None
    assert (residuals.candidate, residuals.active) == pytest.approx((0.7047, 0.6393), abs=1e-4)
    assert not is_accepted({"relevance": replace(one, residuals=residuals)}, 1)
