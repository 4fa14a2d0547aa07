"""KLUE-STS: Korean sentence pairs, their similarity rated 0 to 5 by five to seven of seventeen annotators.

The first sentence serves as the question, the second as its answer."""

from __future__ import annotations

from pathlib import Path

from tests.conversion.files import human, read_rows, write_files

METRIC = "likeness"
DEFINITION = f"{METRIC}=0..5"


def convert(data: Path, folder: Path) -> dict[str, Path]:
    """Write ``questions``, ``answers`` and ``annotators``; name -> path."""
    items = read_rows(data / "items.jsonl")
    content = {
        "questions": [{"id": i["guid"], "category": i["source"], "question": i["sentence1"]} for i in items],
        "answers": [{"question_id": i["guid"], "answer": i["sentence2"]} for i in items],
        "annotators": [
            human(i["guid"], METRIC, rater, value, sample=0)
            for i in items
            for rater, value in zip(i["annotators"], i["annotations"], strict=True)
        ],
    }
    return write_files(folder, content)
