"""SummEval: summaries of 16 systems, rated 1 to 5 by three experts in four dimensions.

A document is a question, each summary a sample of the answer.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.conversion.files import human, read_rows, write_files

DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")
DEFINITIONS = tuple(f"summary_{name}=1..5" for name in DIMENSIONS)


def convert(data: Path, folder: Path) -> dict[str, Path]:
    """Write ``questions``, ``answers`` and ``experts``; name -> path."""
    sample_counts: Counter[str] = Counter()
    items = []
    for item in read_rows(data / "items.jsonl"):
        sample_counts[item["doc_id"]] += 1
        items.append((item, sample_counts[item["doc_id"]]))
    content = {
        "questions": [{"id": key, "category": "news", "question": f"Summarise {key}"} for key in sample_counts],
        "answers": [
            {"question_id": item["doc_id"], "sample": sample, "answer": item["summary"]} for item, sample in items
        ],
        "experts": [
            human(item["doc_id"], f"summary_{name}", f"e{rater}", value, sample)
            for item, sample in items
            for name in DIMENSIONS
            for rater, value in enumerate(item["human"][name])
        ],
    }
    return write_files(folder, content)
