"""What goes to a judge and what comes back: one call is one request, one reply is its outcome, good or bad; what it
cost; and a family at work on one answer, a conversation of one or several calls that ends with results.

A family's ``judge`` function is a generator: it yields what it asks, is sent what was heard, and returns one result for
each of its metrics. It never sees the network or the ledger; whoever drives it makes the calls. Costs are exact
decimals from a table by model and day; unknown tokens or prices give an unknown cost. A model's name tells whether a
server answered with the model that was asked for, and of which family it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field

from evaluation.core.described import read_yaml
from evaluation.core.metric_specs import MetricSpec, RuleMetric, RuleSettings
from evaluation.core.samples import AnswerSpec, FrozenModel, QuestionSpec, Result
from evaluation.judging.rubric import Rubric
from evaluation.network.completions import server_words
from evaluation.network.outcomes import Outcome

VERDICT = "VERDICT:"  # begins the last line of a reply on the rung ``text``
LOGPROB_ROUNDING = 0.01  # by which the logarithm of 1 may be above 0, and probabilities add up to more than 1
Chances = Mapping[str, Mapping[str, float]]  # part of a reply -> level -> the probability of its token there


class Rung(StrEnum):
    """How structured output is asked for, the best first. Whatever the server promises, every reply is read the same
    strict way; only where the JSON object stands differs: the message, the arguments of the one tool, the last line."""

    JSON_SCHEMA = "json_schema"  # strict schema of the reply
    TOOL = "tool"  # the schema as arguments of a tool the model is forced to call
    JSON_OBJECT = "json_object"  # any JSON object, the schema in the prompt
    TEXT = "text"  # nothing promised: the schema in the prompt, the object on the last line


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request's content: chat messages, the reply's JSON schema, and what its hash is made of."""

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]
    request_hash_material: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a judge about an answer: the data ``blocks`` it is shown, in their order, and the JSON
    ``schema`` of its reply, an object with one member per part.

    ``names`` are what the rubric's closing calls the parts (metrics, usually); ``step`` is the rubric's step where a
    family asks several times. ``shape`` is the schema a reply is read by where that is looser than what is asked for:
    a score off the scale is read, and fails by scale. ``whole``: a reply that lacks one of the parts is of no use.
    """

    blocks: Mapping[str, Any]
    schema: Mapping[str, Any]
    names: tuple[str, ...] = ()
    step: str = ""
    shape: Mapping[str, Any] | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One request to a judge. A remote judge reads ``rendered``; the offline baseline answers ``ask`` from
    ``question`` and ``answer``. ``parameters`` go into the request body as they are."""

    rubric: Rubric
    question: QuestionSpec
    answer: AnswerSpec
    ask: Ask
    rendered: Rendered
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rung: Rung = Rung.JSON_SCHEMA

    @property
    def characters(self) -> int:
        """Of all messages."""
        return sum(len(message["content"]) for message in self.rendered.messages)


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply; ``chances`` are the probabilities of it and of the likeliest others in its place."""

    data: bytes
    text: str
    chances: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call to a provider ended. ``raw`` is its text, or the first part of an error's body, fit to be stored (no
    NUL, no lone surrogate). ``tokens_in`` is ``None`` where the server did not say, or said nonsense. ``retry_after``
    is in seconds from the reply. ``detail`` is one line for logs, without secrets. ``free`` marks calls that no
    provider was asked for."""

    outcome: Outcome
    raw: str = ""
    http_status: int | None = None
    retry_after: float | None = None
    model_returned: str = ""
    tokens_in: int | None = None
    elapsed_seconds: float = 0.0
    detail: str = ""
    free: bool = False


@dataclass(frozen=True, slots=True)
class JudgeReply(Ended):
    """How a call to a judge ended. ``ended_at`` is in seconds of the Unix clock. ``logprobs`` marks replies that came
    with log probabilities, ``cached`` those that the ledger had already; ``saved`` is what such a one cost then, in US
    dollars. ``tokens`` stand for the text with their probabilities where the server told them; a reply out of the
    ledger has the ``chances`` that were read from them instead. ``batch`` marks replies that came in a batch of the
    provider's."""

    fingerprint: str = ""
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    logprobs: bool = False
    cached: bool = False
    tokens: tuple[Token, ...] = ()
    chances: Chances | None = None
    saved: Decimal | None = None
    ended_at: float = 0.0
    batch: bool = False


def reply_words(reply: Ended) -> str:
    """What the server said in one line: status, code or content type, and its message or the first line of its text.
    Empty where no server answered."""
    if reply.http_status is None:
        return ""
    return f"{reply.detail or f'HTTP {reply.http_status}'}: {server_words(reply.raw) or 'empty text'}"


def reason_with_words(code: str, reply: Ended) -> str:
    """The reason code with what the server said behind ``": "``, where it said something."""
    words = reply_words(reply)
    return f"{code}: {words}" if words else code


class JudgeClient(AbstractAsyncContextManager["JudgeClient"], Protocol):
    """A judge. ``call`` makes exactly one request and never raises for a fault of the judge; retrying is the
    caller's, so that every attempt can be written down before it is made."""

    async def call(self, request: JudgeCall) -> JudgeReply: ...


@dataclass(frozen=True, slots=True)
class Case:
    """An answer before a judge: ``specs`` are the family's metrics that apply to it, ``settings`` the profile's.
    ``expects``: levels are expected over their token probabilities where they can be."""

    rubric: Rubric
    question: QuestionSpec
    answer: AnswerSpec
    specs: tuple[MetricSpec, ...]
    settings: RuleSettings = RuleSettings()  # noqa: RUF009 -- frozen
    expects: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(spec.name for spec in self.specs)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a reply holds: the ``parts`` of the right shape. ``outcome`` is the reply's own, or ``parse`` where nothing
    usable was heard; then there are no parts. ``chances`` are the token probabilities of their levels, where told."""

    outcome: Outcome
    parts: Mapping[str, Any]
    chances: Chances = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """The reason code of results that depend on it; empty when something was heard."""
        return "" if self.outcome is Outcome.OK else str(self.outcome)


Results = dict[str, Result]
Judging = Generator[Ask, Heard, Results]


@dataclass(frozen=True, slots=True)
class Family:
    """A rubric family: the metrics it gives and how it comes to them. ``decides`` are rule metrics whose value it
    gives where a judge is on. ``floor`` is what an answer that says nothing gets without being sent to a judge; without
    it, as in families that judge something else than the answer, every answer is sent."""

    name: str
    metrics: tuple[MetricSpec, ...]
    judge: Callable[[Case], Judging]
    decides: tuple[RuleMetric, ...] = ()
    floor: Callable[[MetricSpec], Result | None] | None = None

    @property
    def given(self) -> tuple[MetricSpec, ...]:
        """Every metric that a unit of the family gives."""
        return (*self.metrics, *(metric.spec for metric in self.decides))


class Talk:
    """The conversation about one case. ``ask`` is what is to be asked next, ``None`` when ``results`` are there."""

    def __init__(self, judging: Judging) -> None:
        self._judging = judging
        self.ask: Ask | None = None
        self.results: Results = {}
        self.hear(None)

    def hear(self, heard: Heard | None) -> None:
        """Go on with what was heard; ``None`` begins."""
        try:
            self.ask = next(self._judging) if heard is None else self._judging.send(heard)
        except StopIteration as end:
            self.ask, self.results = None, end.value


def failed(case: Case, heard: Heard) -> Results:
    """The results of a conversation that cannot go on."""
    return {name: Result.failed(heard.failure) for name in case.metrics}


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


_ENDING_OF_FILE = re.compile(r"\.(gguf|safetensors|bin)$")
_TAGS = re.compile(r":(free|nitro|floor|exacto)$")  # how a router reaches the model
_LATEST = re.compile(r"[-:@](latest|default)$")
# A date or a number that counts releases; a single digit such as that of gpt-4 or claude-4-5 is part of the name.
_VERSION = re.compile(
    r"[-@:_]((?:20\d\d-?\d\d-?\d\d|\d\d-?20\d\d|\d\d-\d\d|\d{6}|\d{4}|0\d\d)(?:-v\d+(?::\d+)?)?|v\d+(?:\.\d+)*(?::\d+)?)$"
)


def _stem_and_version(name: str) -> tuple[str, str]:
    """A model's name without path, tags and version, in lower case; and the version, empty for an alias."""
    name = _TAGS.sub("", _ENDING_OF_FILE.sub("", re.split(r"[/\\]", name.strip().casefold())[-1]))
    alias = _LATEST.sub("", name)
    found = _VERSION.search(alias)
    return (alias[: found.start()], found[1].replace("-", "")) if found else (alias, "")


def is_other_model(asked: str, answered: str) -> bool:
    """Whether a server named another model than it was asked for. An alias (``gpt-4o``, ``mistral-large-latest``) and
    any dated version of it are the same, two different versions are not; a server that names none told nothing."""
    if not answered or asked.casefold() == answered.casefold():
        return False
    (stem, version), (other_stem, other_version) = _stem_and_version(asked), _stem_and_version(answered)
    return stem != other_stem or (version != other_version and bool(version) and bool(other_version))
