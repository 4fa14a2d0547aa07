"""The toy system as a program: ``python -m examples.rag_command ask QUERY --top-k 5 --format json [--output FILE]``.

It takes the options of ``regulation ask`` as in the profile ``regulation``; of ``--use-rerank`` it has no need."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from examples.retrieval import answer


def main() -> None:
    """Print the answer as JSON, or write it into a file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["ask"])
    parser.add_argument("query")
    parser.add_argument("--top-k", type=int, default=5)
    parser.add_argument("--format", choices=["json"], default="json")
    parser.add_argument("--use-rerank", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    told = answer(options.query, options.top_k)
    sources = [{"content": one["text"], "id": one["id"], "score": one["score"]} for one in told["contexts"]]
    said = {"answer": told["answer"], "sources": sources, "confidence": 0.5, "metadata": {"model": told["model"]}}
    text = json.dumps(said, ensure_ascii=False)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
