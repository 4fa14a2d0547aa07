"""The forward pass of a BERT encoder in numpy: token embeddings without a deep-learning framework.

Devlin and others, "BERT: Pre-training of Deep Bidirectional Transformers" (2019). Texts of one length go through
together, so that no padding and no mask is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Weights = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the weights do not say themselves."""

    layers: int
    heads: int
    epsilon: float


def hidden_states(weights: Weights, shape: Shape, ids: NDArray[np.int64], layer: int) -> Array:
    """The hidden states behind ``layer`` (from 1; 0 is the embedding layer) for token ids of shape (texts, tokens):
    an array of shape (texts, tokens, size)."""
    states = _embedded(weights, shape, ids)
    for number in range(layer):
        states = _layer(weights, shape, f"encoder.layer.{number}", states)
    return states


def _embedded(weights: Weights, shape: Shape, ids: NDArray[np.int64]) -> Array:
    words = weights["embeddings.word_embeddings.weight"][ids]
    places = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
    kind = weights["embeddings.token_type_embeddings.weight"][0]
    return _normalised(weights, shape, "embeddings.LayerNorm", words + places + kind)


def _layer(weights: Weights, shape: Shape, name: str, states: Array) -> Array:
    attended = _linear(weights, f"{name}.attention.output.dense", _attention(weights, shape, name, states))
    states = _normalised(weights, shape, f"{name}.attention.output.LayerNorm", states + attended)
    inner = _gelu(_linear(weights, f"{name}.intermediate.dense", states))
    behind = _linear(weights, f"{name}.output.dense", inner)
    return _normalised(weights, shape, f"{name}.output.LayerNorm", states + behind)


def _attention(weights: Weights, shape: Shape, name: str, states: Array) -> Array:
    texts, tokens, size = states.shape
    split = (texts, tokens, shape.heads, size // shape.heads)
    query, key, value = (
        _linear(weights, f"{name}.attention.self.{part}", states).reshape(split).transpose(0, 2, 1, 3)
        for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(split[3]))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = scores / scores.sum(axis=-1, keepdims=True)
    made: Array = (shares @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, size)
    return made


def _linear(weights: Weights, name: str, states: Array) -> Array:
    # One flat product: numpy would multiply text by text, which keeps several cores waiting for each other.
    flat = states.reshape(-1, states.shape[-1]) @ weights[f"{name}.weight"].T
    made: Array = (flat + weights[f"{name}.bias"]).reshape(*states.shape[:-1], -1)
    return made


def _normalised(weights: Weights, shape: Shape, name: str, states: Array) -> Array:
    centred = states - states.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(shape.epsilon))
    made: Array = centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return made


def _gelu(states: Array) -> Array:
    from scipy.special import erf

    made: Array = (states * 0.5 * (1 + erf(states / np.float32(math.sqrt(2))))).astype(np.float32)
    return made
