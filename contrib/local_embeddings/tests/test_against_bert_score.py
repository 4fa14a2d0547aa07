"""BERTScore and sentence vectors compared with the authors' package and PyTorch.

These packages weigh over a gigabyte, so only ``make crosscheck`` installs them, in its own environment. Without them
this file is skipped, and ``test_bert_score.py`` compares with the figures that were computed here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contrib.local_embeddings.model import local_model
from evaluation.judging.embedding.similarity import match_tokens
from tests.evaluation.judging.embedding.pairs import CLOSE, FIGURES, PAIRS
from tests.evaluation.judging.embedding.tiny import LAYERS, tiny_model

os.environ.setdefault("HF_HUB_OFFLINE", "1")
bert_score = pytest.importorskip("bert_score", reason="bert-score is installed by make crosscheck alone")


@pytest.mark.parametrize("layer", range(1, LAYERS + 1))
def test_precision_recall_and_f1_agree_on_every_layer(tmp_path: Path, layer: int) -> None:
    folder = tiny_model(tmp_path / "tiny")
    scorer = bert_score.BERTScorer(model_type=str(folder), num_layers=layer, idf=False, device="cpu")
    candidates, expected = zip(*PAIRS, strict=True)
    package_figures = [
        tuple(row) for row in zip(*(t.tolist() for t in scorer.score(candidates, expected, batch_size=1)), strict=True)
    ]
    model = local_model(str(folder))
    pairs = [match_tokens(*model.tokens(pair, layer)) for pair in PAIRS]
    for pair, package, stored_figures in zip(pairs, package_figures, FIGURES[layer], strict=True):
        assert (pair.precision, pair.recall, pair.f1) == pytest.approx(package, abs=CLOSE)
        assert package == pytest.approx(stored_figures, abs=CLOSE)


def test_sentence_vectors_agree_with_mean_pooling_in_pytorch(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = str(tiny_model(tmp_path / "tiny"))
    tokenizer, bert = (
        loader.from_pretrained(folder) for loader in (transformers.AutoTokenizer, transformers.AutoModel)
    )
    for text in (text for pair in PAIRS for text in pair):
        with torch.no_grad():
            states = bert.eval()(**tokenizer([text], return_tensors="pt")).last_hidden_state[0]
        pooled = states.mean(0) / states.mean(0).norm()
        assert local_model(folder).sentences([text])[0].tolist() == pytest.approx(pooled.tolist(), abs=CLOSE)
