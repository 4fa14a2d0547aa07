"""RAGChecker's meta-evaluation (Ru et al., NeurIPS 2024) as a file of preferences.

    python -m tests.conversion.ragchecker DATA OUT

``DATA`` is the folder with ``pairs.jsonl``: one row per pair with the labels of two annotators for each dimension and
the scores RAGChecker gave either answer; its preference is the difference b - a.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DIMENSIONS = ("correctness", "completeness", "overall")
JUDGE = "ragchecker@1"


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """A row per pair, dimension and rater."""
    for line in (folder / "pairs.jsonl").read_text("utf-8").splitlines():
        pair = json.loads(line)
        shared = {name: pair[name] for name in ("pair_id", "question", "reference_answer", "answer_a", "answer_b")}
        for dimension in DIMENSIONS:
            for number, value in enumerate(pair["human"][dimension], start=1):
                rating = {"metric": dimension, "rater": "human", "author": f"annotator-{number}", "value": value}
                yield shared | rating
            scores = pair["judge"]["ragchecker"]
            delta = scores["b"][dimension] - scores["a"][dimension]
            yield shared | {"metric": dimension, "rater": "judge", "author": JUDGE, "value": delta}


def convert(folder: Path, output_path: Path) -> Path:
    """The file that ``import_pairs`` reads."""
    output_path.mkdir(parents=True, exist_ok=True)
    file = output_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(folder)), "utf-8")
    return file


if __name__ == "__main__":
    print(convert(Path(sys.argv[1]), Path(sys.argv[2])))
