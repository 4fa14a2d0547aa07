"""A BERT model in a local folder: sentence embeddings by mean pooling, and token embeddings for BERTScore.

The folder holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evaluation.core.errors import DomainError
from evaluation.judging.embedding.similarity import EmbeddingResult, TokenEmbeddings, Vector, is_korean
from evaluation.network.outcomes import Outcome

Array = NDArray[np.float32]


# Reason code of a text in a language that the model does not know.
LANGUAGE = "language"
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_PREFIXES = ("", "bert.", "model.")
# Korean syllables in the vocabulary of a Korean model; English models have none.
_MIN_KOREAN_SYLLABLES = 500
_MAX_TOKENS = 512
_SENTENCE_TOKENS = 256
# Texts of one length computed together.
_BATCH_SIZE = 16


class LocalModel:
    """A model from a folder; the :class:`~evaluation.judging.embedding.similarity.Embedder` of its sentence embeddings.

    Use :func:`local_model`, which caches it.

    :raises DomainError: ``semantic_not_installed`` without the extra ``semantic``; ``local_model_unreadable`` if the
    folder
        holds no BERT model."""

    def __init__(self, folder: Path) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise DomainError("semantic_not_installed") from error
        missing = [name for name in _FILES if not (folder / name).is_file()]
        if missing:
            raise DomainError("local_model_unreadable", folder=folder.name, detail=", ".join(missing))
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise DomainError("local_model_unreadable", folder=folder.name, detail=str(config.get("model_type")))
        self._layers, self._heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._epsilon = np.float32(config["layer_norm_eps"])
        self.name = folder.name if folder.name != "model" else folder.parent.name
        self.digest = model_digest(folder)
        self.space = hashlib.sha256(f"local:{self.digest}:{_SENTENCE_TOKENS}".encode()).hexdigest()
        self.provenance: Mapping[str, Any] = {
            "kind": "local",
            "model": self.name,
            "sha256": self.digest,
            "tokens": _SENTENCE_TOKENS,
        }
        self._weights = _strip_prefix(load_file(folder / "model.safetensors"))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._max_tokens = min(_MAX_TOKENS, int(config["max_position_embeddings"]))

    @cached_property
    def knows_korean(self) -> bool:
        """Return whether the vocabulary contains Korean syllables. Otherwise Korean splits into letters and unknown
        tokens."""
        syllables = sum(any("가" <= c <= "힣" for c in token) for token in self._tokenizer.get_vocab())
        return syllables >= _MIN_KOREAN_SYLLABLES

    def refuses(self, text: str) -> str:
        """Return ``language`` for Korean text if the model does not know Korean."""
        return LANGUAGE if is_korean(text) and not self.knows_korean else ""

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        """Compute the vectors of the texts."""
        started = time.monotonic()
        vectors = tuple(self.sentences(texts))
        elapsed = time.monotonic() - started
        return EmbeddingResult(
            Outcome.OK, vectors=vectors, model_returned=self.name, tokens_in=0, elapsed_seconds=elapsed, free=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: Any) -> None:
        return None

    def sentences(self, texts: Sequence[str]) -> list[Vector]:
        """Return one unit vector per text: the mean of its token embeddings, special tokens included.

        This is the pooling of sentence-transformers. Only the first 256 tokens count."""
        pooled = [states.mean(axis=0) for states, _ in self._encode(texts, self._layers, _SENTENCE_TOKENS)]
        return [vector / np.float32(np.linalg.norm(vector)) for vector in pooled]

    def tokens(self, texts: Sequence[str], layer: int) -> list[TokenEmbeddings]:
        """Return the token embeddings of each text after a layer (from 1), for BERTScore."""
        embeddings = []
        for states, truncated in self._encode(texts, layer, self._max_tokens):
            normalized = states / np.linalg.norm(states, axis=-1, keepdims=True)
            counted = [False, *[True] * (len(normalized) - 2), False]
            embeddings.append(TokenEmbeddings(normalized, counted, truncated))
        return embeddings

    def _encode(self, texts: Sequence[str], layer: int, max_tokens: int) -> list[tuple[Array, bool]]:
        """Return states and whether the text was truncated, in the order of the texts. Equal lengths are batched."""
        encoded = [self._tokenizer.encode(text).ids for text in texts]
        truncated = [[*ids[: max_tokens - 1], ids[-1]] if len(ids) > max_tokens else ids for ids in encoded]
        states: dict[int, Array] = {}
        for length in {len(ids) for ids in truncated}:
            indices = [index for index, ids in enumerate(truncated) if len(ids) == length]
            for start in range(0, len(indices), _BATCH_SIZE):
                batch = indices[start : start + _BATCH_SIZE]
                ids = np.array([truncated[index] for index in batch], dtype=np.int64)
                states |= dict(zip(batch, self._hidden_states(ids, layer), strict=True))
        return [(states[index], len(ids) > max_tokens) for index, ids in enumerate(encoded)]

    def _hidden_states(self, ids: NDArray[np.int64], layer: int) -> Array:
        """Return the hidden states after ``layer`` (from 1; 0 is the embedding layer).

        ``ids`` has shape (texts, tokens); the result has shape (texts, tokens, size)."""
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        positions = self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        token_type = self._weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normalised("embeddings.LayerNorm", words + positions + token_type)
        for number in range(layer):
            name = f"encoder.layer.{number}"
            attended = self._linear(f"{name}.attention.output.dense", self._attention(name, states))
            states = self._normalised(f"{name}.attention.output.LayerNorm", states + attended)
            inner = _gelu(self._linear(f"{name}.intermediate.dense", states))
            projected = self._linear(f"{name}.output.dense", inner)
            states = self._normalised(f"{name}.output.LayerNorm", states + projected)
        return states

    def _attention(self, name: str, states: Array) -> Array:
        texts, tokens, size = states.shape
        split = (texts, tokens, self._heads, size // self._heads)
        query, key, value = (
            self._linear(f"{name}.attention.self.{part}", states).reshape(split).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(split[3]))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = scores / scores.sum(axis=-1, keepdims=True)
        context: Array = (weights @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, size)
        return context

    def _linear(self, name: str, states: Array) -> Array:
        # A single flat product: numpy would multiply text by text, which makes the cores wait for each other.
        flat = states.reshape(-1, states.shape[-1]) @ self._weights[f"{name}.weight"].T
        projected: Array = (flat + self._weights[f"{name}.bias"]).reshape(*states.shape[:-1], -1)
        return projected

    def _normalised(self, name: str, states: Array) -> Array:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._epsilon)
        normalised: Array = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normalised


def _gelu(states: Array) -> Array:
    from scipy.special import erf

    activated: Array = (states * 0.5 * (1 + erf(states / np.float32(math.sqrt(2))))).astype(np.float32)
    return activated


@lru_cache(maxsize=2)
def local_model(folder: str) -> LocalModel:
    """Load the model of a folder, cached.

    :raises DomainError: see :class:`LocalModel`."""
    return LocalModel(Path(folder))


def model_digest(folder: Path) -> str:
    """Return the SHA-256 of the model's weights and tokenizer, which identifies the model.

    :raises DomainError: ``local_model_unreadable`` if the folder does not hold them."""
    try:
        times = tuple((folder / name).stat().st_mtime_ns for name in _FILES[1:])
    except OSError as error:
        raise DomainError("local_model_unreadable", folder=folder.name, detail=type(error).__name__) from error
    return _digest(folder, times)


@lru_cache(maxsize=8)
def _digest(folder: Path, _changed: tuple[int, ...]) -> str:
    digest = hashlib.sha256()
    for name in _FILES[1:]:
        with (folder / name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def layer_count(folder: Path) -> int:
    """Return the number of layers.

    :raises DomainError: ``local_model_unreadable``."""
    try:
        return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"])
    except (OSError, ValueError, KeyError) as error:
        raise DomainError("local_model_unreadable", folder=folder.name, detail=type(error).__name__) from error


def _strip_prefix(weights: Mapping[str, Any]) -> dict[str, Array]:
    """Convert weights to single precision, without a name prefix such as ``bert.``."""
    prefix = next((p for p in _PREFIXES if f"{p}embeddings.word_embeddings.weight" in weights), None)
    if prefix is None:
        raise DomainError("local_model_unreadable", folder="", detail="embeddings.word_embeddings.weight")
    return {
        name.removeprefix(prefix): array.astype(np.float32)
        for name, array in weights.items()
        if name.startswith(prefix) and array.dtype.kind == "f"
    }
