"""Model families and equality of model names."""

from __future__ import annotations

import pytest

from evaluation.judging.calls import is_other_model, model_families, model_family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-4o-mini", "gpt"),
        ("openai/gpt-4.1", "gpt"),
        ("o3-mini", "gpt"),
        ("chatgpt-4o-latest", "gpt"),
        ("claude-sonnet-4", "claude"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("gemma2:9b", "gemini"),
        ("LGAI-EXAONE/EXAONE-3.5-7.8B", "exaone"),
        ("Qwen2.5-72B", "qwen"),
        ("mixtral-8x7b", "mistral"),
        ("mistral-large", "mistral"),
        ("gemini-2.0-flash", "gemini"),
        ("deepseek-ai/DeepSeek-V3", "deepseek"),
        ("phi-4", "phi"),
        ("command-r-plus", "command"),
        ("grok-3", "grok"),
        ("HyperCLOVA-X", "hyperclova"),
        ("kakaocorp/kanana-1.5", "kanana"),
        ("glm-4", "glm"),
        ("yi-34b", "yi"),
        ("granite-3.1", "granite"),
        ("nova-pro", "nova"),
        ("my-model", ""),
        ("lexical-1", ""),
        ("", ""),
    ],
)
def test_the_family_is_read_from_the_name(name: str, family: str) -> None:
    assert model_family(name) == family


def test_families_of_several_names() -> None:
    assert model_families(["gpt-4o", "solar-pro", "vector rag"]) == {"gpt", "solar"}


@pytest.mark.parametrize(
    ("requested", "returned", "different"),
    [
        ("gpt-4o", "gpt-4o", False),
        ("gpt-4o", "gpt-4o-2024-08-06", False),
        ("gpt-4o", "", False),
        ("meta-llama/Llama-3", "llama-3", False),
        ("llama3", "llama3:latest", False),
        ("mistral-large-latest", "mistral-large-2411", False),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", False),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620", False),
        ("gpt-4o-2024-08-06", "gpt-4o", False),
        ("gpt-4", "gpt-4-0613", False),
        ("command-r-plus", "command-r-plus-08-2024", False),
        ("gemini-1.5-pro", "models/gemini-1.5-pro-002", False),
        ("deepseek/deepseek-chat:free", "deepseek/deepseek-chat", False),
        ("Qwen/Qwen3-8B", "/srv/models/Qwen3-8B", False),
        ("llama-3.1-8b-instruct", "C:\\models\\llama-3.1-8b-instruct.gguf", False),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", True),
        ("mistral-large-2407", "mistral-large-2411", True),
        ("mistral-large-latest", "mistral-small-2409", True),
        ("claude-sonnet-4", "claude-sonnet-4-5-20250929", True),
        ("qwen2.5:7b", "qwen2.5:14b", True),
        ("gpt-4", "gpt-4.1", True),
        ("llama-3", "llama-3-70b", True),
        ("gpt-4o", "gpt-4o-mini", True),
        ("gpt-4o", "gpt-4", True),
        ("judge-1", "judge-1-cheap", True),
        ("judge-1", "another-model", True),
    ],
)
def test_dated_name_is_the_same_model_and_others_differ(requested: str, returned: str, different: bool) -> None:
    assert is_other_model(requested, returned) is different
