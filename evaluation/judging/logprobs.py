"""Token probabilities at the scores of a reply, and the expected level (G-Eval, Liu et al. 2023, section 2.2).

Only one-digit scores are read, because only then one token is the whole level: two digits, decimals and words span
several tokens, and alternatives of the first one have unknown continuations. The expected level is conditional on the
reason that precedes it."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from evaluation.core.samples import Result
from evaluation.judging.calls import LOGPROB_ROUNDING, Chances, JudgeReply, JudgeRequest, ResponseFormat, Token
from evaluation.judging.rubric import RubricMetric
from evaluation.judging.verdict_text import find_verdict

_SCORE = "score"
# Digits of a stored probability.
_PROBABILITY_DIGITS = 6
# Characters that a tokenizer may merge with a level: the end of the member's name before it, closing marks after it.
_LEVEL = re.compile(r'(?:"?\s*:)?\s*([0-9])[\s,}]*')
_WHITESPACE = re.compile(r"\s*")
# Excludes 4.0, whose first token may also begin 4.5.
_ONE_DIGIT = re.compile(r"[0-9](?![0-9.eE])")
_DECODER = json.JSONDecoder()
# Minimum probability mass on levels of the scale.
MIN_MASS = 0.9
# Maximum that OpenAI and vLLM return.
MAX_ALTERNATIVES = 20
# Rounding that keeps sums within the scale.
_DIGITS = 9


def level_probabilities(
    reply: JudgeReply, request: JudgeRequest, response_format: ResponseFormat, parts: Collection[str]
) -> Chances:
    """Probability of each level, for each parsed part with a score of one-digit levels. Unlikely levels may be missing.

    Parts are left out if the tokens do not add up to the text or the token at the score is more than a level."""
    if reply.chances is not None:
        return reply.chances
    shift = b"".join(token.data for token in reply.tokens).find(reply.raw.encode()) if reply.tokens else -1
    if shift < 0:
        return {}
    starts = [0, *accumulate(len(token.data) for token in reply.tokens)]
    chances_by_part: dict[str, Mapping[str, float]] = {}
    verdict = find_verdict(reply.raw, response_format)
    for name, levels in _levels_by_part(request, parts).items() if verdict else ():
        position = _value_position(reply.raw, (name, _SCORE), verdict[0]) if verdict else None
        if position is not None and _ONE_DIGIT.match(reply.raw, position):
            byte_offset = shift + len(reply.raw[:position].encode())
            if chances := _probability_by_level(reply.tokens[bisect_right(starts, byte_offset) - 1], levels):
                chances_by_part[name] = chances
    return chances_by_part


def are_digits(levels: Collection[object]) -> bool:
    """Return whether every level is a single digit."""
    return bool(levels) and all(level in range(10) and not isinstance(level, bool) for level in levels)


def _levels_by_part(request: JudgeRequest, parts: Collection[str]) -> dict[str, Collection[str]]:
    """Parts with a score, and their levels as text."""
    members: Mapping[str, Any] = request.schema["properties"]
    enums = {name: members[name].get("properties", {}).get(_SCORE, {}).get("enum", ()) for name in parts}
    return {name: [str(level) for level in levels] for name, levels in enums.items() if are_digits(levels)}


def _probability_by_level(token: Token, levels: Collection[str]) -> dict[str, float]:
    if _parse_level(token.text) not in levels:
        return {}
    probabilities: dict[str, float] = {}
    for text, chance in token.chances.items():
        if (level := _parse_level(text)) in levels:
            probabilities[level] = probabilities.get(level, 0.0) + chance
    if math.fsum(probabilities.values()) > 1.0 + LOGPROB_ROUNDING:
        return {}
    return {level: round(chance, _PROBABILITY_DIGITS) for level, chance in sorted(probabilities.items())}


def _parse_level(text: str) -> str:
    match = _LEVEL.fullmatch(text)
    return match[1] if match else ""


def _value_position(text: str, path: tuple[str, ...], position: int) -> int | None:
    """Offset of the value at the path in the JSON object that starts at ``position``; ``None`` if absent."""
    position = _skip_whitespace(text, position)
    while text[position : position + 1] in {"{", ","}:
        key, position = _DECODER.raw_decode(text, _skip_whitespace(text, position + 1))
        position = _skip_whitespace(text, _skip_whitespace(text, position) + 1)
        if key == path[0]:
            return _value_position(text, path[1:], position) if path[1:] else position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip_whitespace(text, position)
    return None


def _skip_whitespace(text: str, position: int) -> int:
    match = _WHITESPACE.match(text, position)
    return match.end() if match else position


def with_logprobs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with log probabilities requested. Judge parameters can lower ``top_logprobs`` for servers with a
    smaller limit."""
    return {"top_logprobs": MAX_ALTERNATIVES, **parameters, "logprobs": True}


def has_digit_levels(metric: RubricMetric) -> bool:
    """Return whether an expected level exists: all levels are single digits. Labels, decimals and computed scores are
    taken as given."""
    return bool(metric.levels) and are_digits(metric.read_scale().levels)


def expected_level(result: Result, chances: Mapping[str, float]) -> Result:
    """Result with the expected level, and the probabilities, their mass and standard deviation in the detail.

    Fails with ``no_logprobs`` without probabilities, with ``low_mass`` if levels of the scale cover less than 0.9 of
    the probability."""
    if result.value is None:
        return result
    detail: dict[str, Any] = {**result.detail, "said": result.value}
    if not chances:
        return Result.failed("no_logprobs", detail={**detail, "reason": result.reason})
    mass = math.fsum(chances.values())
    detail |= {"mass": round(mass, _DIGITS), "chances": dict(chances)}
    if mass < MIN_MASS:
        return Result.failed("low_mass", detail={**detail, "reason": result.reason})
    mean = math.fsum(int(level) * chance for level, chance in chances.items()) / mass
    variance = math.fsum(chance * (int(level) - mean) ** 2 for level, chance in chances.items()) / mass
    detail |= {"method": "expected", "spread": round(math.sqrt(variance), _DIGITS)}
    return replace(result, value=round(mean, _DIGITS), detail=detail)
