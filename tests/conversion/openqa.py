"""OpenQA-eval (Kamalloo et al., ACL 2023) as a question set, an answer file and rating files.

    python -m tests.conversion.openqa DATA OUT

``DATA`` is the folder with ``items.jsonl``: one row per distinct answer, with human and judge verdicts nested inside.
Several answers to one question become samples, numbered from 1 in the file's order. The adjudicated human verdict and
the judges rate ``acceptable``. The annotators behind it rate ``acceptable_to_annotator``, because the adjudicated
verdict is not an independent opinion. Written files, all JSON Lines: ``questions``, ``answers``, ``human``,
``annotators`` and one per judge."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

METRIC, OF_ANNOTATORS = "acceptable", "acceptable_to_annotator"
DEFINITIONS = (f"{METRIC}=bool", f"{OF_ANNOTATORS}=bool")
JUDGES = ("gpt-4", "text-davinci-003", "bem")
NO_VERDICT = "the reply begins with neither yes nor no"
Item = Mapping[str, Any]
Row = dict[str, Any]


def numbered(items: Iterable[Item]) -> Iterator[tuple[Item, int]]:
    """Each item with the number of its answer among those to its question."""
    sample_counts: Counter[str] = Counter()
    for item in items:
        sample_counts[item["question_id"]] += 1
        yield item, sample_counts[item["question_id"]]


def questions(items: Iterable[Item]) -> list[Row]:
    """One row per question."""
    rows_by_id = {
        item["question_id"]: {
            "id": item["question_id"],
            "category": "open_domain",
            "question": item["question"],
            "expected_answer": item["gold_answers"],
        }
        for item in items
    }
    return list(rows_by_id.values())


def answers(items: Iterable[Item]) -> list[Row]:
    """One row per answer."""
    return [
        {"question_id": item["question_id"], "sample": sample, "answer": item["answer"], "item_id": item["item_id"]}
        for item, sample in numbered(items)
    ]


def human(items: Iterable[Item]) -> list[Row]:
    """The adjudicated verdict of each answer."""
    return [
        _rating(item, sample, METRIC, item["human"]["acceptable"], rater="human", author="adjudicated")
        for item, sample in numbered(items)
    ]


def annotators(items: Iterable[Item]) -> list[Row]:
    """The verdicts of the up to three annotators; an empty slot gives no row."""
    return [
        _rating(item, sample, OF_ANNOTATORS, verdict, rater="human", author=f"annotator{number}")
        for item, sample in numbered(items)
        for number, verdict in enumerate(item["human"]["annotators"], start=1)
        if verdict is not None
    ]


def judge(items: Iterable[Item], name: str) -> list[Row]:
    """A judge's verdicts with its raw replies; a reply without a verdict is a failure with a reason."""
    rows = []
    for item, sample in numbered(items):
        verdict = item["judges"][name]
        row = _rating(item, sample, METRIC, verdict["verdict"], rater="judge", author=name)
        row["reason"] = verdict.get("raw") or f"equivalence {verdict.get('prob')}"
        if verdict["verdict"] is None:
            row["reason"] = f"{NO_VERDICT}: {row['reason']}"
        rows.append(row)
    return rows


def convert(data: Path, folder: Path) -> dict[str, Path]:
    """Write all files into ``folder``; name -> path."""
    items = [json.loads(line) for line in (data / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    content = {
        "questions": questions(items),
        "answers": answers(items),
        "human": human(items),
        "annotators": annotators(items),
        **{name: judge(items, name) for name in JUDGES},
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, rows in content.items():
        paths[name] = folder / f"{name}.jsonl"
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        paths[name].write_text(text, encoding="utf-8")
    return paths


def _rating(item: Item, sample: int, metric: str, value: int | None, *, rater: str, author: str) -> Row:
    return {
        "question_id": item["question_id"],
        "sample": sample,
        "metric": metric,
        "value": value,
        "rater": rater,
        "author": author,
    }


if __name__ == "__main__":
    for name, path in convert(Path(sys.argv[1]), Path(sys.argv[2])).items():
        print(name, path)
