"""Reading the published data and writing the files of the contract, all JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_files(folder: Path, content: Mapping[str, Iterable[Row]]) -> dict[str, Path]:
    """Write one file for each name; name -> path."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, rows in content.items():
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return paths


def human(question: str, metric: str, author: str, value: int, sample: int = 1) -> Row:
    """A person's rating."""
    return {
        "question_id": question,
        "sample": sample,
        "metric": metric,
        "value": value,
        "rater": "human",
        "author": author,
    }


def judge(question: str, metric: str, author: str, value: int, sample: int = 1) -> Row:
    """A judge's value, on the scale or off it."""
    return {**human(question, metric, author, value, sample), "rater": "judge"}
