"""Token probabilities as servers tell them (``logprobs.content`` of a completion), read with suspicion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evaluation.judging.calls import Token

_ROUNDING = 0.01  # by which a server's logarithm of 1 may be above 0


def read_tokens(told: Any) -> tuple[Token, ...]:
    """The tokens of a completion's ``logprobs.content``; none where they are missing or one of them makes no sense."""
    if not isinstance(told, list):
        return ()
    tokens = [_token(one) for one in told]
    return tuple(one for one in tokens if one is not None) if None not in tokens else ()


def _token(told: Any) -> Token | None:
    chances: dict[str, float] = {}
    others = told.get("top_logprobs") if isinstance(told, dict) else None
    for one in (told, *(others if isinstance(others, list) else ())):
        text, chance = _chance(one)
        if chance is None:
            return None
        chances[text] = chance
    return Token(_data(told), str(told["token"]), chances)


def _chance(told: Any) -> tuple[str, float | None]:
    text, logprob = (told.get("token"), told.get("logprob")) if isinstance(told, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(logprob, int | float) or isinstance(logprob, bool):
        return "", None
    return text, math.exp(min(logprob, 0.0)) if logprob <= _ROUNDING else None  # NaN is not


def _data(told: Mapping[str, Any]) -> bytes:
    """The token's bytes: a character may lie in several tokens, whose texts then are no text."""
    data = told.get("bytes")
    if isinstance(data, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in data):
        return bytes(data)
    return str(told["token"]).encode("utf-8", "replace")
