"""A toy retrieval system over the demo corpus: passages by shared words, and the first sentence of the best as the
answer. It is here to be asked, not to be good.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parents[1] / "review" / "management" / "demo" / "en" / "corpus.jsonl"
_WORD = re.compile(r"\w{2,}")


@cache
def passages() -> list[dict[str, Any]]:
    """The passages of the demo corpus."""
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines() if line.strip()]


def retrieve(question: str, k: int = 5) -> list[dict[str, Any]]:
    """The ``k`` passages that share most words with the question, with the share of its words as ``score``."""
    asked = _words(question)
    scored = [(len(asked & _words(one["text"])) / max(1, len(asked)), one) for one in passages()]
    best = sorted(scored, key=lambda pair: -pair[0])[:k]
    return [{"id": one["chunk_id"], "text": one["text"], "score": round(score, 4)} for score, one in best]


def answer(question: str, k: int = 5) -> dict[str, Any]:
    """An answer with the passages it is from."""
    found = retrieve(question, k)
    text = re.split(r"(?<=[.!?。])\s", found[0]["text"])[0] if found else "I found nothing about that."
    usage = {"prompt_tokens": sum(len(one["text"]) // 4 for one in found), "completion_tokens": len(text) // 4}
    return {"answer": text, "contexts": found, "model": "toy-1", "usage": usage}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
