"""Judge providers by name."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.core.errors import UnknownName
from evaluation.judging.providers.anthropic import ANTHROPIC
from evaluation.judging.providers.baseline import BASELINE
from evaluation.judging.providers.bedrock import BEDROCK
from evaluation.judging.providers.gemini import GEMINI
from evaluation.judging.providers.openai import OPENAI
from evaluation.judging.providers.protocol import Provider

PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider for provider in (OPENAI, ANTHROPIC, BEDROCK, GEMINI, BASELINE)
}


def endpoint_providers() -> list[Provider]:
    return [provider for provider in PROVIDERS.values() if provider.remote]


def provider_named(name: str) -> Provider:
    """Provider with this name.

    :raises UnknownName: if no provider has the name."""
    if name not in PROVIDERS:
        raise UnknownName("judge provider", name, [provider.name for provider in endpoint_providers()])
    return PROVIDERS[name]
