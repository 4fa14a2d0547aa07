"""The worked example of ``docs/corpora.md`` is what the demo's corpus gives, and its limits are those of the code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluation.core.registry import RuleSettings
from evaluation.core.samples import AnswerSpec
from evaluation.corpora import rechunking, searching
from evaluation.corpora.importing import ID_LENGTH
from evaluation.corpora.searching import Retriever, WordIndex, found_by
from evaluation.corpora.splitting import Splitting, split
from evaluation.files import documents
from evaluation.files.documents import read_documents
from evaluation.files.reading import read_questions
from evaluation.metrics.depths import CURVES, means_by_depth
from evaluation.metrics.normalise import KIWI, analysis
from evaluation.metrics.retrieval import Ranking, ranking
from evaluation.systems import corpus
from tests.bench import retrieval as bench

PAGE = Path("docs/corpora.md").read_text(encoding="utf-8")
DEMO = Path("review/management/demo")
DEPTHS = (1, 3, 5, 10)


def _passages() -> dict[str, str]:
    read = read_documents((DEMO / "corpus.jsonl").read_bytes(), "corpus.jsonl")
    return {p.id: document.text[p.start : p.end] for document in read for p in document.passages or ()}


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


def test_how_to_read_the_table_is_what_stands_in_it() -> None:
    rows = {cells[1]: [float(cell) for cell in cells[2:-1]] for line in PAGE.splitlines() if (cells := _cells(line))}
    first, within = rows["hit_at_k"][0], rows["hit_at_k"][-1]
    of_five = rows["recall_at_k"][DEPTHS.index(5)]
    assert within == 1
    assert f"{first:.0%} have a right passage in the first place and all of them within ten" in PAGE
    assert f"only {of_five:.0%} of what is relevant" in PAGE
    assert round(1 / (1 - of_five)) == 9  # "a ninth of it"


def _cells(line: str) -> list[str]:
    """The cells of a row of the table of figures."""
    cells = [cell.strip() for cell in line.split("|")]
    return cells if len(cells) > 2 and cells[1] in CURVES else []


def test_limits_of_splitting_and_reading_are_told_as_they_are() -> None:
    limits = {name: field.metadata for name, field in Splitting.model_fields.items()}
    least, most = (next(getattr(m, end) for m in limits["characters"] if hasattr(m, end)) for end in ("ge", "le"))
    assert f"(`--characters`, {least} to {most:,})" in PAGE
    least, most = (next(getattr(m, end) for m in limits["overlap"] if hasattr(m, end)) for end in ("ge", "le"))
    assert f"`--overlap` sentences ({least} to {most})" in PAGE
    default = Splitting()
    assert f"--characters {default.characters}, --overlap {default.overlap}" in PAGE
    gigabytes = documents._PDF_MEMORY / 1e9
    assert f"({documents._PDF_SECONDS} s, {gigabytes:g} GB, {documents._PDF_PAGES:,} pages)" in PAGE
    assert "up to ten times the limit of uploads" in PAGE  # inflated=10 * max_bytes, tested with a file of its own
    assert f"by the first {ID_LENGTH} digits of the SHA-256" in PAGE


def test_how_passages_are_found_is_told_as_it_is() -> None:
    from bm25s import BM25

    index = BM25()
    assert f"(k1 {index.k1:g}, b {index.b:g})" in PAGE
    assert f"1 / ({searching._FUSED} + rank)" in PAGE
    assert searching._DEPTH == 100  # "the first hundred of either"
    assert rechunking.LEAST_SHARE == 0.5  # "at least half of the shorter one"
    assert corpus._QUOTED == 2  # "the two sentences"


def test_the_bench_is_what_the_page_says_of_it() -> None:
    assert f"about {bench.CHUNKS:,} chunks of {bench.LENGTH} words" in PAGE
    assert bench.K == 10  # "ten passages each"
    if os.environ.get("CONCORD_TEST_DATA"):
        chunks, questions = bench.planted(bench.CHUNKS)
        assert f"asks {len(questions)} questions" in PAGE
        assert len(chunks) == bench.CHUNKS


def test_the_numbers_of_the_demo_corpus_are_told() -> None:
    read = read_documents((DEMO / "corpus.jsonl").read_bytes(), "corpus.jsonl")
    assert f"{len(read)} documents in {len(_passages())} chunks" in PAGE


def test_the_example_of_splitting_is_what_is_split() -> None:
    text = PAGE.split("```text\n")[1].split("```")[0].strip()
    spans = split(text, Splitting(characters=100))
    for start, end in spans:
        assert f"{start}–{end}" in PAGE
    assert f"in {len(spans)} chunks" in PAGE
