"""A BERT model in a local folder: sentence embeddings by mean pooling, and token embeddings for BERTScore.

The folder holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``. Nothing is ever fetched.
"""

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

from evaluation.core.errors import Refused
from evaluation.judging.embedding.similarity import Embedded, Tokens, Vector, is_korean
from evaluation.network.outcomes import Outcome

Array = NDArray[np.float32]


LANGUAGE = "language"  # the reason code of a text in a language that the model does not know
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_PREFIXES = ("", "bert.", "model.")
_KNOWS_KOREAN = 500  # whole syllables in the vocabulary; models for English have none
_MOST_TOKENS = 512
_SENTENCE_TOKENS = 256
_CHUNK = 16  # texts of one length that go through together


class LocalModel:
    """A model from a folder, and the :class:`~evaluation.judging.embedding.similarity.Embedder` of its sentence
    embeddings. Use :func:`local_model`, which keeps it.

    :raises Refused: ``local_model_unreadable`` when the folder holds no BERT model, or the extra ``semantic`` is not
        installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise Refused("semantic_not_installed") from error
        missing = [name for name in _FILES if not (folder / name).is_file()]
        if missing:
            raise Refused("local_model_unreadable", folder=folder.name, detail=", ".join(missing))
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise Refused("local_model_unreadable", folder=folder.name, detail=str(config.get("model_type")))
        self._layers, self._heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._epsilon = np.float32(config["layer_norm_eps"])
        self.name = folder.name if folder.name != "model" else folder.parent.name
        self.digest = digest_of(folder)
        self.space = hashlib.sha256(f"local:{self.digest}:{_SENTENCE_TOKENS}".encode()).hexdigest()
        self.provenance: Mapping[str, Any] = {
            "kind": "local",
            "model": self.name,
            "sha256": self.digest,
            "tokens": _SENTENCE_TOKENS,
        }
        self._weights = _bare(load_file(folder / "model.safetensors"))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._longest = min(_MOST_TOKENS, int(config["max_position_embeddings"]))

    @cached_property
    def knows_korean(self) -> bool:
        """Whether the vocabulary holds Korean syllables; without them Korean falls into letters and unknown pieces."""
        syllables = sum(any("가" <= c <= "힣" for c in token) for token in self._tokenizer.get_vocab())
        return syllables >= _KNOWS_KOREAN

    def refuses(self, text: str) -> str:
        """``language`` for Korean text where the model knows none."""
        return LANGUAGE if is_korean(text) and not self.knows_korean else ""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The vectors of the texts, computed here."""
        started = time.monotonic()
        vectors = tuple(self.sentences(texts))
        took = time.monotonic() - started
        return Embedded(
            Outcome.OK, vectors=vectors, model_returned=self.name, tokens_in=0, elapsed_seconds=took, free=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: Any) -> None:
        return None

    def sentences(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text: the mean of its token embeddings, marks included, as sentence-transformers
        pool. Of longer texts the first 256 tokens count."""
        pooled = [states.mean(axis=0) for states, _ in self._run(texts, self._layers, _SENTENCE_TOKENS)]
        return [vector / np.float32(np.linalg.norm(vector)) for vector in pooled]

    def tokens(self, texts: Sequence[str], layer: int) -> list[Tokens]:
        """The token embeddings of each text behind a layer (from 1), for BERTScore."""
        found = []
        for states, truncated in self._run(texts, layer, self._longest):
            units = states / np.linalg.norm(states, axis=-1, keepdims=True)
            inside = [False, *[True] * (len(units) - 2), False]
            found.append(Tokens(units, inside, truncated))
        return found

    def _run(self, texts: Sequence[str], layer: int, longest: int) -> list[tuple[Array, bool]]:
        """States and whether the text was cut, in the order of the texts; texts of one length go through together."""
        encoded = [self._tokenizer.encode(text).ids for text in texts]
        cut = [[*ids[: longest - 1], ids[-1]] if len(ids) > longest else ids for ids in encoded]
        found: dict[int, Array] = {}
        for length in {len(ids) for ids in cut}:
            places = [place for place, ids in enumerate(cut) if len(ids) == length]
            for start in range(0, len(places), _CHUNK):
                chunk = places[start : start + _CHUNK]
                ids = np.array([cut[place] for place in chunk], dtype=np.int64)
                found |= dict(zip(chunk, self._hidden_states(ids, layer), strict=True))
        return [(found[place], len(ids) > longest) for place, ids in enumerate(encoded)]

    def _hidden_states(self, ids: NDArray[np.int64], layer: int) -> Array:
        """The hidden states behind ``layer`` (from 1; 0 is the embedding layer) for token ids of shape (texts, tokens):
        an array of shape (texts, tokens, size)."""
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        places = self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normalised("embeddings.LayerNorm", words + places + kind)
        for number in range(layer):
            name = f"encoder.layer.{number}"
            attended = self._linear(f"{name}.attention.output.dense", self._attention(name, states))
            states = self._normalised(f"{name}.attention.output.LayerNorm", states + attended)
            inner = _gelu(self._linear(f"{name}.intermediate.dense", states))
            behind = self._linear(f"{name}.output.dense", inner)
            states = self._normalised(f"{name}.output.LayerNorm", states + behind)
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
        shares = scores / scores.sum(axis=-1, keepdims=True)
        made: Array = (shares @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, size)
        return made

    def _linear(self, name: str, states: Array) -> Array:
        # One flat product: numpy would multiply text by text, which keeps several cores waiting for each other.
        flat = states.reshape(-1, states.shape[-1]) @ self._weights[f"{name}.weight"].T
        made: Array = (flat + self._weights[f"{name}.bias"]).reshape(*states.shape[:-1], -1)
        return made

    def _normalised(self, name: str, states: Array) -> Array:
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._epsilon)
        made: Array = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return made


def _gelu(states: Array) -> Array:
    from scipy.special import erf

    made: Array = (states * 0.5 * (1 + erf(states / np.float32(math.sqrt(2))))).astype(np.float32)
    return made


@lru_cache(maxsize=2)
def local_model(folder: str) -> LocalModel:
    """The model of a folder, loaded once.

    :raises Refused: see :class:`LocalModel`.
    """
    return LocalModel(Path(folder))


def digest_of(folder: Path) -> str:
    """SHA-256 of the model's weights and tokenizer, which says which model it is.

    :raises Refused: ``local_model_unreadable`` where the folder does not hold them.
    """
    try:
        times = tuple((folder / name).stat().st_mtime_ns for name in _FILES[1:])
    except OSError as error:
        raise Refused("local_model_unreadable", folder=folder.name, detail=type(error).__name__) from error
    return _digest(folder, times)


@lru_cache(maxsize=8)
def _digest(folder: Path, _changed: tuple[int, ...]) -> str:
    digest = hashlib.sha256()
    for name in _FILES[1:]:
        with (folder / name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def layers_of(folder: Path) -> int:
    """How many layers the model has.

    :raises Refused: ``local_model_unreadable``.
    """
    try:
        return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"])
    except (OSError, ValueError, KeyError) as error:
        raise Refused("local_model_unreadable", folder=folder.name, detail=type(error).__name__) from error


def _bare(weights: Mapping[str, Any]) -> dict[str, Array]:
    """The weights by their names without a prefix such as ``bert.``, in single precision."""
    prefix = next((p for p in _PREFIXES if f"{p}embeddings.word_embeddings.weight" in weights), None)
    if prefix is None:
        raise Refused("local_model_unreadable", folder="", detail="embeddings.word_embeddings.weight")
    return {
        name.removeprefix(prefix): array.astype(np.float32)
        for name, array in weights.items()
        if name.startswith(prefix) and array.dtype.kind == "f"
    }
