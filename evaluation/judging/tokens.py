"""Token probabilities at the places of a reply where its levels stand.

Only one digit at the place of a score is read, since only there a token is a level and nothing else: a level of two
digits, a decimal or a word is several tokens, of whose first one nobody knows what would have followed.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Any

from evaluation.judging.calls import Ask, Chances, JudgeReply, Rung, Token
from evaluation.judging.wire import VERDICT

_SCORE = "score"
_ROUNDING = 0.01  # by which rounded probabilities may add up to more than 1
_DIGITS = 6  # of a probability that is kept
# What a tokeniser may put into one token with a level: the end of the member's name before it, what closes it after.
_LEVEL = re.compile(r'(?:"?\s*:)?\s*([0-9])[\s,}]*')
_GAP = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


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
    for name, levels in _levels(ask, parts).items():
        place = _place(reply.raw, (name, _SCORE), _object_at(reply.raw, rung))
        if place is not None:
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
    if math.fsum(found.values()) > 1.0 + _ROUNDING:
        return {}
    return {level: round(chance, _DIGITS) for level, chance in sorted(found.items())}


def _level_of(text: str) -> str:
    match = _LEVEL.fullmatch(text)
    return match[1] if match else ""


def _object_at(text: str, rung: Rung) -> int:
    """Where the verdict's object begins, blanks before it left aside."""
    if rung is not Rung.TEXT:
        return 0
    read = text.rstrip()
    last = read.splitlines(keepends=True)[-1]
    return len(read) - len(last) + last.index(VERDICT) + len(VERDICT)


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
