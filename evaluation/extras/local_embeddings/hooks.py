"""What local embeddings do for the core: they choose and open models."""

from __future__ import annotations

from evaluation.extras.local_embeddings.choosing import chosen, chosen_tokens, embedder_of, tokens_of
from evaluation.work.plugins import Extra, LocalModels

EXTRA = Extra(
    name="local_embeddings",
    local_models=LocalModels(chosen=chosen, chosen_tokens=chosen_tokens, embedder=embedder_of, tokens=tokens_of),
)
