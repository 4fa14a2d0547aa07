"""A BERT model small enough to build in a test: weights drawn from a seed, a vocabulary of a few words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

KNOWN = """the a fund index tracks pays dividend every quarter month year large small companies is was not good bad
yesterday today price rises falls with and of in . , ? ##s ##ed ##ing"""
WORDS = KNOWN.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LAYERS, HEADS, SIZE, INNER, LONGEST = 3, 2, 16, 32, 64


def tiny_model(folder: Path, *, seed: int = 11, words: Iterable[str] = WORDS, prefix: str = "") -> Path:
    """Create a folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json`` of a model of three layers."""
    save_file = pytest.importorskip("safetensors.numpy", reason="the extra semantic is not installed").save_file
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = [*SPECIAL, *words]
    _tokenizer(folder, vocabulary)
    (folder / "config.json").write_text(json.dumps(_config(len(vocabulary))), encoding="utf-8")
    weights = {f"{prefix}{name}": array for name, array in _weights(len(vocabulary), seed).items()}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    return folder


def _config(size: int) -> dict[str, object]:
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": size,
        "hidden_size": SIZE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "hidden_act": "gelu",
        "max_position_embeddings": LONGEST,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def _tokenizer(folder: Path, vocabulary: list[str]) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the extra semantic is not installed")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    marks = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": LONGEST, **marks}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def _weights(size: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def matrix(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.3).astype(np.float32)

    def norm(name: str) -> dict[str, np.ndarray]:
        return {f"{name}.weight": 1 + matrix(SIZE), f"{name}.bias": matrix(SIZE)}

    weights = {
        "embeddings.word_embeddings.weight": matrix(size, SIZE),
        "embeddings.position_embeddings.weight": matrix(LONGEST, SIZE),
        "embeddings.token_type_embeddings.weight": matrix(2, SIZE),
        **norm("embeddings.LayerNorm"),
        "pooler.dense.weight": matrix(SIZE, SIZE),
        "pooler.dense.bias": matrix(SIZE),
    }
    shapes = {
        "attention.self.query": (SIZE, SIZE),
        "attention.self.key": (SIZE, SIZE),
        "attention.self.value": (SIZE, SIZE),
        "attention.output.dense": (SIZE, SIZE),
        "intermediate.dense": (INNER, SIZE),
        "output.dense": (SIZE, INNER),
    }
    for layer in (f"encoder.layer.{n}" for n in range(LAYERS)):
        for name, shape in shapes.items():
            weights |= {f"{layer}.{name}.weight": matrix(*shape), f"{layer}.{name}.bias": matrix(shape[0])}
        weights |= norm(f"{layer}.attention.output.LayerNorm") | norm(f"{layer}.output.LayerNorm")
    return weights
