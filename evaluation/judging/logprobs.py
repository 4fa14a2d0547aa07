"""Token probabilities at the places of a reply where its levels stand, and the level to be expected by them (G-Eval,
Liu et al. 2023, section 2.2).

Only one digit at the place of a score is read, since only there a token is a level and nothing else: a level of two
digits, a decimal or a word is several tokens, of whose first one nobody knows what would have followed. The expected
level is conditional on the reason the judge wrote before it.
"""

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
from evaluation.judging.calls import LOGPROB_ROUNDING, Ask, Chances, JudgeReply, Rung, Token
from evaluation.judging.rubric import RubricMetric
from evaluation.judging.verdict_text import find_verdict

_SCORE = "score"
_KEPT_DIGITS = 6  # of a probability that is kept
# What a tokeniser may put into one token with a level: the end of the member's name before it, what closes it after.
_LEVEL = re.compile(r'(?:"?\s*:)?\s*([0-9])[\s,}]*')
_GAP = re.compile(r"\s*")
_ONE_DIGIT = re.compile(r"[0-9](?![0-9.eE])")  # not 4.0, whose first token may be that of 4.5
_DECODER = json.JSONDecoder()
LEAST_MASS = 0.9  # of the probability at the place that has to lie on levels of the scale
MOST_ALTERNATIVES = 20  # what OpenAI and vLLM tell at most
_DIGITS = 9  # so that nothing but adding up leaves the scale


def level_chances(reply: JudgeReply, ask: Ask, rung: Rung, parts: Collection[str]) -> Chances:
    """For each of the parts read from the reply that holds a score of one-digit levels, the probability of each level
    at its place; levels that were not among the likeliest are left out. So are parts for which nothing can be told:
    the tokens do not add up to the text, or the token there is more than a level.
    """
    if reply.chances is not None:
        return reply.chances
    shift = b"".join(token.data for token in reply.tokens).find(reply.raw.encode()) if reply.tokens else -1
    if shift < 0:
        return {}
    starts = [0, *accumulate(len(token.data) for token in reply.tokens)]
    found: dict[str, Mapping[str, float]] = {}
    verdict = find_verdict(reply.raw, rung)
    for name, levels in _levels(ask, parts).items() if verdict else ():
        place = _place(reply.raw, (name, _SCORE), verdict[0]) if verdict else None
        if place is not None and _ONE_DIGIT.match(reply.raw, place):
            at = shift + len(reply.raw[:place].encode())
            if chances := _by_level(reply.tokens[bisect_right(starts, at) - 1], levels):
                found[name] = chances
    return found


def one_digit(levels: Collection[object]) -> bool:
    """Whether each of the levels is a single digit."""
    return bool(levels) and all(level in range(10) and not isinstance(level, bool) for level in levels)


def _levels(ask: Ask, parts: Collection[str]) -> dict[str, Collection[str]]:
    """Those of the parts that hold a score, with their levels as text."""
    members: Mapping[str, Any] = ask.schema["properties"]
    wanted = {name: members[name].get("properties", {}).get(_SCORE, {}).get("enum", ()) for name in parts}
    return {name: [str(level) for level in levels] for name, levels in wanted.items() if one_digit(levels)}


def _by_level(token: Token, levels: Collection[str]) -> dict[str, float]:
    if _level_of(token.text) not in levels:
        return {}
    found: dict[str, float] = {}
    for text, chance in token.chances.items():
        if (level := _level_of(text)) in levels:
            found[level] = found.get(level, 0.0) + chance
    if math.fsum(found.values()) > 1.0 + LOGPROB_ROUNDING:
        return {}
    return {level: round(chance, _KEPT_DIGITS) for level, chance in sorted(found.items())}


def _level_of(text: str) -> str:
    match = _LEVEL.fullmatch(text)
    return match[1] if match else ""


def _place(text: str, path: tuple[str, ...], at: int) -> int | None:
    """Where the value of the path begins in the JSON object at ``at``; ``None`` where it has none."""
    at = _after_gap(text, at)
    while text[at : at + 1] in {"{", ","}:
        key, at = _DECODER.raw_decode(text, _after_gap(text, at + 1))
        at = _after_gap(text, _after_gap(text, at) + 1)
        if key == path[0]:
            return _place(text, path[1:], at) if path[1:] else at
        _, at = _DECODER.raw_decode(text, at)
        at = _after_gap(text, at)
    return None


def _after_gap(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def asking_for(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's parameters with the wish for token probabilities. A server that tells fewer alternatives than 20 gets
    its own ``top_logprobs`` by the judge's parameters."""
    return {"top_logprobs": MOST_ALTERNATIVES, **parameters, "logprobs": True}


def covers(metric: RubricMetric) -> bool:
    """Whether the metric's level can be expected: its levels are whole numbers of one digit each. Labels, decimals and
    figures computed from parts are taken as the judge says them."""
    return bool(metric.levels) and one_digit(metric.read_scale().levels)


def expected(said: Result, chances: Mapping[str, float]) -> Result:
    """The expected level in place of the one ``said``, with the probabilities, the mass they cover and their standard
    deviation beside it.

    Fails with ``no_logprobs`` without probabilities, ``low_mass`` where levels of the scale cover less than 0.9 of the
    probability: the rest may stand for anything.
    """
    if said.value is None:
        return said
    told: dict[str, Any] = {**said.detail, "said": said.value}
    if not chances:
        return Result.failed("no_logprobs", detail={**told, "reason": said.reason})
    mass = math.fsum(chances.values())
    told |= {"mass": round(mass, _DIGITS), "chances": dict(chances)}
    if mass < LEAST_MASS:
        return Result.failed("low_mass", detail={**told, "reason": said.reason})
    mean = math.fsum(int(level) * chance for level, chance in chances.items()) / mass
    variance = math.fsum(chance * (int(level) - mean) ** 2 for level, chance in chances.items()) / mass
    told |= {"method": "expected", "spread": round(math.sqrt(variance), _DIGITS)}
    return replace(said, value=round(mean, _DIGITS), detail=told)
