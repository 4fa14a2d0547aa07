"""The worked example of ``docs/corpora.md`` is what the demo's corpus gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.core.registry import RuleSettings
from evaluation.core.samples import AnswerSpec
from evaluation.corpora.searching import Retriever, WordIndex, found_by
from evaluation.corpora.splitting import Splitting, split
from evaluation.files.documents import read_documents
from evaluation.files.reading import read_questions
from evaluation.metrics.depths import CURVES, means_by_depth
from evaluation.metrics.normalise import KIWI, analysis
from evaluation.metrics.retrieval import Ranking, ranking

PAGE = Path("docs/corpora.md").read_text(encoding="utf-8")
DEMO = Path("review/management/demo")
DEPTHS = (1, 3, 5, 10)


def _passages() -> dict[str, str]:
    documents = read_documents((DEMO / "corpus.jsonl").read_bytes(), "corpus.jsonl")
    return {p.id: document.text[p.start : p.end] for document in documents for p in document.passages or ()}


def worked() -> list[str]:
    """The lines of the table: means over the demo's questions that name passages, found by words."""
    passages = _passages()
    index, ids = WordIndex(list(passages.values())), list(passages)
    rankings = []
    for question in read_questions((DEMO / "questions.yaml").read_bytes(), "questions.yaml").questions:
        hits = found_by(Retriever.WORDS, DEPTHS[-1], words=index, vectors=None, text=question.text, vector=None)
        found = AnswerSpec("", None, tuple(ids[hit.place] for hit in hits))
        rankings.append(ranking(question, found, RuleSettings(k=DEPTHS[-1])))
    ranked = [one for one in rankings if isinstance(one, Ranking)]
    means = means_by_depth(ranked, DEPTHS[-1])
    rows = [f"| {name} | {' | '.join(f'{means[name][k - 1]:.3f}' for k in DEPTHS)} |" for name in CURVES]
    return [f"{len(ranked)} of {len(rankings)} questions", *rows]


@pytest.mark.skipif(analysis() != KIWI, reason="Korean is read by its morphemes in the example")
def test_the_table_is_what_the_demo_gives() -> None:
    for line in worked():
        assert line in PAGE, line


def test_the_numbers_of_the_demo_corpus_are_told() -> None:
    documents = read_documents((DEMO / "corpus.jsonl").read_bytes(), "corpus.jsonl")
    assert f"{len(documents)} documents in {len(_passages())} chunks" in PAGE


def test_the_example_of_splitting_is_what_is_split() -> None:
    text = PAGE.split("```text\n")[1].split("```")[0].strip()
    spans = split(text, Splitting(characters=100))
    for start, end in spans:
        assert f"{start}–{end}" in PAGE
    assert f"in {len(spans)} chunks" in PAGE
