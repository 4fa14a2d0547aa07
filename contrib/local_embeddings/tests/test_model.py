"""Local embedding model from a folder: read once, identified by its content, refused when invalid."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from contrib.local_embeddings.model import LocalModel, layer_count, local_model, model_digest
from evaluation.core.errors import DomainError
from evaluation.judging.embedding.similarity import cosine
from tests.evaluation.judging.embedding.tiny import LAYERS, SIZE, WORDS, tiny_model

TEXTS = ["The fund tracks an index.", "price falls", "price falls today"]
# Mean of the token states of a PyTorch BertModel with these weights, of length 1: what sentence-transformers pool.
FROM_PYTORCH = {
    TEXTS[0]: [0.178747, 0.126732, 0.046386, -0.065091, 0.08891, 0.073742, 0.537491, -0.275466],
    TEXTS[1]: [0.155668, 0.137467, 0.060547, -0.083024, 0.083021, 0.142204, 0.601451, -0.273317],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_model(tmp_path / "tiny")


def test_sentence_vectors_equal_those_of_pytorch(folder: Path) -> None:
    model = local_model(str(folder))
    for text, expected in FROM_PYTORCH.items():
        (vector,) = model.sentences([text])
        assert vector.shape == (SIZE,)
        assert vector[:8].tolist() == pytest.approx(expected, abs=2e-6)
        assert np.linalg.norm(vector) == pytest.approx(1.0)


def test_vector_of_a_text_does_not_depend_on_the_batch(folder: Path) -> None:
    model = local_model(str(folder))
    batch_vectors = model.sentences(TEXTS)
    single_vectors = [model.sentences([text])[0] for text in TEXTS]
    assert [cosine(a, b) for a, b in zip(batch_vectors, single_vectors, strict=True)] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("prefix", ["bert.", "model."])
def test_weights_may_carry_a_prefix(tmp_path: Path, prefix: str) -> None:
    plain_folder, prefixed_folder = tiny_model(tmp_path / "plain"), tiny_model(tmp_path / "named", prefix=prefix)
    assert (LocalModel(plain_folder).sentences(TEXTS)[0] == LocalModel(prefixed_folder).sentences(TEXTS)[0]).all()


def test_embedder_names_its_model_and_makes_no_calls(folder: Path) -> None:
    model = local_model(str(folder))
    with model as embedder:
        result = embedder.embed(TEXTS)
        assert (result.outcome, len(result.vectors), result.free) == ("ok", 3, True)
        assert dict(embedder.provenance) == {"kind": "local", "model": "tiny", "sha256": model.digest, "tokens": 256}


def test_korean_is_refused_unless_the_vocabulary_has_it(tmp_path: Path) -> None:
    syllables = [chr(ord("가") + n) for n in range(600)]
    english = local_model(str(tiny_model(tmp_path / "en")))
    korean = local_model(str(tiny_model(tmp_path / "ko", words=[*WORDS, *syllables])))
    assert english.refuses("원금은 보장되지 않습니다") == "language"
    assert korean.refuses("원금은 보장되지 않습니다") == ""
    assert english.refuses("The fund tracks the KOSPI 200 index of large companies (코스피).") == ""


def test_other_weights_are_another_model(folder: Path, tmp_path: Path) -> None:
    assert model_digest(folder) == model_digest(tiny_model(tmp_path / "same"))
    assert model_digest(folder) != model_digest(tiny_model(tmp_path / "other", seed=12))
    assert layer_count(folder) == LAYERS


def test_folder_without_a_model_is_refused_with_the_reason(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    for load in (LocalModel, model_digest):
        with pytest.raises(DomainError) as error:
            load(folder)
        assert error.value.code == "local_model_unreadable"


def test_another_architecture_is_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "roberta"}))
    with pytest.raises(DomainError) as error:
        LocalModel(folder)
    assert error.value.params["detail"] == "roberta"
