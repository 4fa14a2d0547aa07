"""RAGTruth's question answering (Niu et al., 2024) as a question set and an answer file: folder ``ragtruth_qa``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Item = Mapping[str, Any]
Row = dict[str, Any]


def read_items(folder: Path) -> list[Item]:
    """The answers of the folder."""
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]


def questions(items: Iterable[Item]) -> list[Row]:
    """One row per question; there are no expected answers."""
    return [
        {"id": key, "category": "qa", "question": text}
        for key, text in {item["source_id"]: item["question"] for item in items}.items()
    ]


def answers(items: Iterable[Item]) -> list[Row]:
    """One row per answer, several samples to a question."""
    sample_counts: Counter[str] = Counter()
    rows = []
    for item in items:
        sample_counts[item["source_id"]] += 1
        rows.append(
            {
                "question_id": item["source_id"],
                "sample": sample_counts[item["source_id"]],
                "answer": item["answer"],
                "contexts": item["contexts"],
            }
        )
    return rows
