"""Token probabilities at the places of a reply where its levels stand.

Only one digit at the place of a score is read, since only there a token is a level and nothing else: a level of two
digits, a decimal or a word is several tokens, of whose first one nobody knows what would have followed.

What a call cost: exact decimals from a table by model and day. Unknown tokens or prices give an unknown cost.

What a model's name tells: whether a server answered with the model that was asked for, and which family it is of.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaluation.core.errors import InvalidFile, Problem
from evaluation.judging.calls import Ask, Chances, JudgeReply, Outcome, Rung, Token
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


SHIPPED = Path(__file__).parent / "prices.yaml"
_PER = Decimal(1_000_000)
_FREE = Decimal(0)
Money = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Price(BaseModel):
    """US dollars per million tokens of one model from a day on. Without ``cached``, cached input costs as other input.

    Reasoning tokens are part of the output and cost the same. ``batch`` is the part of the price that a call in a batch
    costs, such as 0.5; without it what comes in batches has an unknown cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: Annotated[str, Field(min_length=1)]
    since: date
    input: Money
    output: Money
    cached: Money | None = None
    batch: Annotated[Decimal, Field(ge=0, le=1, allow_inf_nan=False)] | None = None

    def cost(self, reply: JudgeReply) -> Decimal | None:
        """Input, cached input and output of the reply; unknown where one of the counts that matter is."""
        part = self.batch if reply.batch else Decimal(1)
        if reply.tokens_in is None or reply.tokens_out is None or part is None:
            return None
        cached_price = self.input if self.cached is None else self.cached
        cached = 0 if self.cached is None else reply.tokens_cached
        if cached is None:
            return None
        fresh = reply.tokens_in - cached
        return part * (fresh * self.input + cached * cached_price + reply.tokens_out * self.output) / _PER


class PriceTable:
    """Prices of several models over time."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = sorted(prices, key=lambda price: price.since)

    def price(self, model: str, on: date) -> Price | None:
        """The newest price of exactly this model that holds on the day."""
        holding = [price for price in self._prices if price.model == model and price.since <= on]
        return holding[-1] if holding else None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    prices: tuple[Price, ...] = ()


def read_prices(path: Path = SHIPPED) -> PriceTable:
    """The table of a YAML file; the shipped one is empty, which makes every cost unknown.

    :raises InvalidFile: when it is not YAML or an entry is not a price; each problem names its field.
    """
    try:
        return PriceTable(_File.model_validate(yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)).prices)
    except yaml.YAMLError as error:
        raise InvalidFile([Problem("prices_not_yaml", path.name, params={"error": str(error)})]) from error
    except ValidationError as error:
        problems = [
            Problem("prices_invalid", path.name, field=".".join(map(str, e["loc"])), params={"error": e["msg"]})
            for e in error.errors()
        ]
        raise InvalidFile(problems) from error


@cache
def _shipped() -> PriceTable:
    return read_prices()


def cost_of(
    model: str, reply: JudgeReply, *, on: date | None = None, table: PriceTable | None = None
) -> Decimal | None:
    """US dollars of one call on a day (today in UTC), by the model the reply names, else the one that was called.

    0 where nothing was sent or no provider was asked (the offline baseline); ``None`` = unknown.
    """
    if reply.free or reply.outcome in {Outcome.BLOCKED, Outcome.NOT_SENT}:
        return _FREE
    table, on = table or _shipped(), on or datetime.now(UTC).date()
    price = table.price(reply.model_returned, on) or table.price(model, on)
    return price.cost(reply) if price else None


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
