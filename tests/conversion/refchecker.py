"""RefChecker's claims with human labels (Hu et al., 2024) as a question set, an answer file and a rating file.

    python -m tests.conversion.refchecker DATA OUT

``DATA`` is the folder with ``answers.jsonl``. One answer per example and model becomes a sample of its question. Each
claim triplet with its label becomes a part of a rating of ``claim_support``, whose value the formula gives. Answers
without claims are not rated. Written as JSON Lines: ``questions``, ``answers`` and ``claims``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

METRIC, AUTHOR = "claim_support", "refchecker annotators"
Item = Mapping[str, Any]
Row = dict[str, Any]


def read_items(folder: Path) -> list[Item]:
    """The answers of the folder."""
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]


def question_id(item: Item) -> str:
    """One question per example of a data set."""
    return f"{item['dataset']}:{item['example_id']}"


def numbered(items: Iterable[Item]) -> Iterator[tuple[Item, int]]:
    """Each answer with its number among those to its question."""
    sample_counts: Counter[str] = Counter()
    for item in items:
        sample_counts[question_id(item)] += 1
        yield item, sample_counts[question_id(item)]


def questions(items: Iterable[Item]) -> list[Row]:
    """Return rows of questions; the data has no texts, so the ids serve as texts."""
    rows_by_id = {question_id(item): {"category": item["setting"]} for item in items}
    return [{"id": key, "question": f"RefChecker example {key}", **fields} for key, fields in rows_by_id.items()]


def answers(items: Iterable[Item]) -> list[Row]:
    """One row per answer, with the model that gave it."""
    return [
        {"question_id": question_id(item), "sample": n, "answer": item["answer"], "model": item["model"]}
        for item, n in numbered(items)
    ]


def claims(items: Iterable[Item]) -> list[Row]:
    """A rating by parts of each answer that has claims."""
    return [
        {
            "question_id": question_id(item),
            "sample": n,
            "metric": METRIC,
            "parts": [
                {"kind": "claim", "text": " ".join(claim["triplet"]), "label": claim["human_label"]}
                for claim in item["claims"]
            ],
            "rater": "human",
            "author": AUTHOR,
        }
        for item, n in numbered(items)
        if item["claims"]
    ]


def lines(rows: Iterable[Row]) -> bytes:
    """JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


if __name__ == "__main__":
    data, output_folder = read_items(Path(sys.argv[1])), Path(sys.argv[2])
    output_folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("questions", questions(data)), ("answers", answers(data)), ("claims", claims(data))):
        (output_folder / f"{name}.jsonl").write_bytes(lines(rows))
