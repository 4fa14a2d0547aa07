"""KLUE-STS: Korean pairs of sentences, their likeness rated 0 to 5 by five to seven of seventeen annotators.

The first sentence stands for a question, the second for its answer.
"""

from __future__ import annotations

from pathlib import Path

from tests.conversion.files import human, rows_of, written

METRIC = "likeness"
DEFINITION = f"{METRIC}=0..5"


def convert(data: Path, out: Path) -> dict[str, Path]:
    """Write ``questions``, ``answers`` and ``annotators``; name -> path."""
    items = rows_of(data / "items.jsonl")
    content = {
        "questions": [{"id": i["guid"], "category": i["source"], "question": i["sentence1"]} for i in items],
        "answers": [{"question_id": i["guid"], "answer": i["sentence2"]} for i in items],
        "annotators": [
            human(i["guid"], METRIC, rater, value, sample=0)
            for i in items
            for rater, value in zip(i["annotators"], i["annotations"], strict=True)
        ],
    }
    return written(out, content)
