"""Converts the folder ``openqa_nq301`` of the sample data into the import formats: questions, answers, ratings.

Its items are distinct answers of several systems to 150 questions; each answer becomes a sample of its question. Run
as ``python -m tests.evaluation.formats.openqa_nq301 FOLDER TARGET`` to write the three files.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METRIC = "acceptable"
DEFINITION = f"{METRIC}=bool"
JUDGES = ("gpt-4", "text-davinci-003", "bem")


def convert(folder: Path) -> dict[str, bytes]:
    """The contents of the three files by name, converted from ``items.jsonl`` of the folder."""
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    sample_counts: Counter[str] = Counter()
    samples = []
    for item in items:
        samples.append(sample_counts[item["question_id"]])
        sample_counts[item["question_id"]] += 1
    questions = {item["question_id"]: item for item in items}
    return {
        "questions.jsonl": _lines(map(_question, questions.values())),
        "answers.jsonl": _lines(_answer(item, sample) for item, sample in zip(items, samples, strict=True)),
        "ratings.jsonl": _lines(
            rating for item, sample in zip(items, samples, strict=True) for rating in _ratings(item, sample)
        ),
    }


def _lines(rows: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _question(item: dict[str, Any]) -> dict[str, Any]:
    names = {"id": "question_id", "question": "question", "gold_answers": "gold_answers"}
    return {"category": "nq"} | {name: item[key] for name, key in names.items()}


def _answer(item: dict[str, Any], sample: int) -> dict[str, Any]:
    return {
        "question_id": item["question_id"],
        "sample": sample,
        "answer": item["answer"],
        "item_id": item["item_id"],
    }


def _ratings(item: dict[str, Any], sample: int) -> Iterator[dict[str, Any]]:
    """The adjudicated human verdict and the verdict of each judge; a missing verdict is null with the reply as its
    reason."""
    identity = {"question_id": item["question_id"], "sample": sample, "metric": METRIC}
    yield identity | {"value": item["human"]["acceptable"], "rater": "human", "author": "adjudicated"}
    for judge in JUDGES:
        reply = item["judges"][judge]
        origin = {"value": reply["verdict"], "rater": "judge", "author": judge}
        reason = {} if reply["verdict"] is not None else {"reason": "parse: " + str(reply.get("raw", "no value"))[:200]}
        yield identity | origin | reason


def main(folder: str, target: str) -> None:
    for name, content in convert(Path(folder)).items():
        (Path(target) / name).write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
