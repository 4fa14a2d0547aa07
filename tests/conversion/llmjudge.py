"""LLMJudge at TREC DL 2023: the relevance of 2,012 passages to 12 queries by one assessor and 33 judges.

A query is a question, each of its passages a sample of the answer; the passages' texts are not published.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.conversion.files import human, judge, read_rows, write_files

METRIC = "relevance_of_passage"
DEFINITION = f"{METRIC}=0..3"


def convert(data: Path, folder: Path) -> dict[str, Path]:
    """Write ``questions``, ``answers``, ``human`` and ``judges`` (all 33 in one file); name -> path."""
    sample_counts: Counter[str] = Counter()
    items = []
    for item in read_rows(data / "judgements.jsonl"):
        sample_counts[item["query_id"]] += 1
        items.append((item, sample_counts[item["query_id"]]))
    queries = {item["query_id"]: item["query"] for item, _ in items}
    content = {
        "questions": [{"id": key, "category": "passages", "question": text} for key, text in queries.items()],
        "answers": [
            {"question_id": item["query_id"], "sample": sample, "answer": f"passage {item['passage_id']}"}
            for item, sample in items
        ],
        "human": [human(item["query_id"], METRIC, "assessor", item["human"], sample) for item, sample in items],
        "judges": [
            judge(item["query_id"], METRIC, name, value, sample)
            for item, sample in items
            for name, value in item["judges"].items()
        ],
    }
    return write_files(folder, content)
