"""What a model's name tells: whether a server answered with the model that was asked for, and which family it is of."""

from __future__ import annotations

import re
from collections.abc import Iterable

FAMILIES = (
    "gpt", "claude", "gemini", "gemma", "llama", "qwen", "mistral", "mixtral", "deepseek", "phi", "command", "grok",
    "exaone", "hyperclova", "solar", "kanana", "glm", "yi", "granite", "nova",
)  # fmt: skip
_ALIASES = {"mixtral": "mistral", "gemma": "gemini", "chatgpt": "gpt"}  # of one maker and one line
_REASONING_GPT = re.compile(r"^o[1-9](?![a-z0-9])")
_WORDS = re.compile(r"[a-z]+")


def family_of_model(name: str) -> str:
    """The family that the name tells, in lower case; empty where it tells none. ``openai/gpt-4o`` is ``gpt``."""
    last: str = name.casefold().rpartition("/")[2]
    if _REASONING_GPT.match(last):
        return "gpt"
    for word in _WORDS.findall(last):
        family: str = _ALIASES.get(word, word)
        if family in FAMILIES:
            return family
    return ""


def families_in(names: Iterable[str]) -> frozenset[str]:
    """The families that some names tell."""
    return frozenset(filter(None, map(family_of_model, names)))


def is_other_model(asked: str, answered: str) -> bool:
    """Whether a server named another model than it was asked for. A dated or numbered version of the same name
    (``gpt-4o`` answered by ``gpt-4o-2024-08-06``) is the same; a server that names none told nothing."""
    if not answered or asked.casefold() == answered.casefold():
        return False
    short, longer = asked.casefold().rpartition("/")[2], answered.casefold().rpartition("/")[2]
    return not re.fullmatch(re.escape(short) + r"([-@:](latest|v?\d[\d.\-]*))*", longer)
