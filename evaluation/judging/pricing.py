"""What a call cost: exact decimals from a table by model and day. Unknown tokens or prices give an unknown cost.

And what a model's name tells: whether a server answered with the model that was asked for, and of which family it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from evaluation.core.samples import FrozenModel
from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.judging.rubric import read_yaml

SHIPPED = Path(__file__).parent / "prices.yaml"
_PER = Decimal(1_000_000)
Money = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Price(FrozenModel):
    """US dollars per million tokens of one model from a day on. Without ``cached``, cached input costs as other input.

    Reasoning tokens are part of the output and cost the same. ``batch`` is the part of the price that a call in a batch
    costs, such as 0.5; without it what comes in batches has an unknown cost.
    """

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
        holding = (price for price in reversed(self._prices) if price.model == model and price.since <= on)
        return next(holding, None)


class _File(FrozenModel):
    prices: tuple[Price, ...] = ()


def read_prices(path: Path = SHIPPED) -> PriceTable:
    """The table of a YAML file; the shipped one is empty, which makes every cost unknown.

    :raises InvalidFile: when it is not YAML or an entry is not a price; each problem names its field.
    """
    return PriceTable(read_yaml(_File, path.read_text("utf-8"), path.name, "prices").prices)


_shipped = cache(read_prices)


def cost_of(
    model: str, reply: JudgeReply, *, on: date | None = None, table: PriceTable | None = None
) -> Decimal | None:
    """US dollars of one call on a day (today in UTC), by the model the reply names, else the one that was called.

    0 where nothing was sent or no provider was asked (the offline baseline); ``None`` = unknown.
    """
    if reply.free or reply.outcome in {Outcome.BLOCKED, Outcome.NOT_SENT}:
        return Decimal(0)
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
