"""Judge requests and replies, their cost, and the dialog of a rubric family about one answer.

A family's ``judge`` function is a generator. It yields requests, receives parsed replies and returns one result per
metric. It never accesses the network or the ledger; the caller makes the calls. Costs are exact decimals from a price
table by model and day; unknown tokens or prices give an unknown cost. Model names tell the model family and whether the
server answered with the requested model."""

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

from evaluation.core.metric_specs import MetricSpec, RuleMetric, RuleSettings
from evaluation.core.samples import AnswerSpec, FrozenModel, QuestionSpec, Result
from evaluation.core.yaml_models import read_yaml
from evaluation.judging.rubric import Rubric
from evaluation.network.completions import server_message
from evaluation.network.outcomes import Outcome

# Begins the last line of a reply in the format ``text``.
VERDICT = "VERDICT:"
# Tolerance for logarithms above 0 and for probabilities that add up to more than 1.
LOGPROB_ROUNDING = 0.01
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_LENGTH = 64
# Part of a reply -> level -> probability of the level's token.
Chances = Mapping[str, Mapping[str, float]]


class ResponseFormat(StrEnum):
    """Method of requesting structured output, best first. Replies of all formats are parsed equally strictly; only the
    position of the JSON object differs: message, tool arguments or last line."""

    # Strict schema of the reply.
    JSON_SCHEMA = "json_schema"
    # The schema as arguments of a tool that the model must call.
    TOOL = "tool"
    # Any JSON object; the schema is in the prompt.
    JSON_OBJECT = "json_object"
    # No server support: the schema is in the prompt, the object on the last line.
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """Chat messages, reply schema and the material of the request hash."""

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any]
    request_hash_material: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Question to a judge about an answer: ordered data ``blocks`` and the JSON ``schema`` of the reply, an object with
    one member per part.

    ``names`` are the parts as the rubric's closing calls them, usually metrics. ``step`` is the rubric step of
    multi-call families. ``accepted_schema`` is a looser schema for parsing, so that an off-scale score fails as
    ``scale``. ``all_parts_required``: a reply without one of the parts is unusable."""

    blocks: Mapping[str, Any]
    schema: Mapping[str, Any]
    names: tuple[str, ...] = ()
    step: str = ""
    accepted_schema: Mapping[str, Any] | None = None
    all_parts_required: bool = False


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One request to a judge. A remote judge reads ``rendered``; the offline baseline answers ``judge_request`` from
    ``question`` and ``answer``. ``parameters`` are added to the request body."""

    rubric: Rubric
    question: QuestionSpec
    answer: AnswerSpec
    judge_request: JudgeRequest
    rendered: RenderedRequest
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response_format: ResponseFormat = ResponseFormat.JSON_SCHEMA

    @property
    def schema_name(self) -> str:
        """The rubric's family as a name that providers accept for schemas and tools: at most 64 letters, digits,
        underscores and hyphens. Families of criteria have a colon."""
        return _NOT_IN_NAMES.sub("_", self.rubric.family)[:_MAX_NAME_LENGTH]

    @property
    def characters(self) -> int:
        """Length of all messages."""
        return sum(len(message["content"]) for message in self.rendered.messages)


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply. ``chances`` holds its probability and those of the likeliest alternatives."""

    data: bytes
    text: str
    chances: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CallResult:
    """Result of a provider call.

    ``raw`` is the reply text or the start of an error body, storable (no NUL, no lone surrogates). ``tokens_in`` is
    ``None`` if the server reported no valid count. ``retry_after`` is in seconds after the reply. ``detail`` is one log
    line without secrets. ``free``: no provider was called."""

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
class JudgeReply(CallResult):
    """Result of a judge call. ``ended_at`` is in Unix seconds. ``logprobs``: the reply came with log probabilities.

    ``cached``: the reply came from the ledger; ``saved`` is what the original call cost in US dollars. ``tokens`` holds
    the tokens with their probabilities, if reported; a cached reply has ``chances`` instead. ``batch``: the reply came
    from a provider batch."""

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


def quote_server_message(reply: CallResult) -> str:
    """One line with the status, code or content type and the server's message, or the first line of its text. Empty if
    no server answered."""
    if reply.http_status is None:
        return ""
    return f"{reply.detail or f'HTTP {reply.http_status}'}: {server_message(reply.raw) or 'empty text'}"


def reason_with_message(code: str, reply: CallResult) -> str:
    """Reason code, followed by ``": "`` and the server's message if there is one."""
    message = quote_server_message(reply)
    return f"{code}: {message}" if message else code


class JudgeClient(AbstractAsyncContextManager["JudgeClient"], Protocol):
    """A judge. ``call`` makes exactly one request and never raises for faults of the judge. Retries are the caller's
    task, so that every attempt is recorded before it is made."""

    async def call(self, request: JudgeCall) -> JudgeReply: ...


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """An answer to judge. ``specs`` are the applicable metrics of the family, ``settings`` those of the profile.
    ``expects``: use expected levels from token probabilities where possible."""

    rubric: Rubric
    question: QuestionSpec
    answer: AnswerSpec
    specs: tuple[MetricSpec, ...]
    settings: RuleSettings = RuleSettings()  # noqa: RUF009 -- frozen
    expects: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """Parsed reply: the ``parts`` that match their schema. ``outcome`` is that of the call, or ``parse`` if the reply
    was unusable; ``parts`` is then empty. ``chances`` are the token probabilities of the levels, if reported."""

    outcome: Outcome
    parts: Mapping[str, Any]
    chances: Chances = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """Reason code of dependent results; empty if the reply was usable."""
        return "" if self.outcome is Outcome.OK else str(self.outcome)


Results = dict[str, Result]
Judging = Generator[JudgeRequest, ParsedReply, Results]


@dataclass(frozen=True, slots=True)
class Family:
    """A rubric family: its metrics and the function that judges them. ``decided_rules`` are rule metrics whose value
    the family replaces in judged runs. ``floor`` gives the result of an answer without content, which is not sent to
    a judge; families without it send every answer."""

    name: str
    metrics: tuple[MetricSpec, ...]
    judge: Callable[[JudgeCase], Judging]
    decided_rules: tuple[RuleMetric, ...] = ()
    floor: Callable[[MetricSpec], Result | None] | None = None

    @property
    def produced_metrics(self) -> tuple[MetricSpec, ...]:
        """Every metric that the family produces."""
        return (*self.metrics, *(metric.spec for metric in self.decided_rules))


class JudgeDialog:
    """Dialog about one case. ``request`` is the next request, or ``None`` once ``results`` are complete."""

    def __init__(self, judging: Judging) -> None:
        self._judging = judging
        self.request: JudgeRequest | None = None
        self.results: Results = {}
        self.advance(None)

    def advance(self, reply: ParsedReply | None) -> None:
        """Continue with a reply; ``None`` starts the dialog."""
        try:
            self.request = next(self._judging) if reply is None else self._judging.send(reply)
        except StopIteration as end:
            self.request, self.results = None, end.value


def failed_results(case: JudgeCase, reply: ParsedReply) -> Results:
    """Failed results for every metric of the case."""
    return {name: Result.failed(reply.failure) for name in case.metrics}


SHIPPED_PRICES = Path(__file__).parent / "prices.yaml"
_TOKENS_PER_PRICE = Decimal(1_000_000)
Money = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Price(FrozenModel):
    """US dollars per million tokens of one model from a day on. Without ``cached``, cached input costs as much as other
    input.

    Reasoning tokens are part of the output. ``batch`` is the price factor of batch calls, such as 0.5; without it their
    cost is unknown."""

    model: Annotated[str, Field(min_length=1)]
    since: date
    input: Money
    output: Money
    cached: Money | None = None
    batch: Annotated[Decimal, Field(ge=0, le=1, allow_inf_nan=False)] | None = None

    def cost(self, reply: JudgeReply) -> Decimal | None:
        """Cost of input, cached input and output of the reply; ``None`` if a required count is unknown."""
        factor = self.batch if reply.batch else Decimal(1)
        if reply.tokens_in is None or reply.tokens_out is None or factor is None:
            return None
        cached_price = self.input if self.cached is None else self.cached
        cached = 0 if self.cached is None else reply.tokens_cached
        if cached is None:
            return None
        uncached = reply.tokens_in - cached
        return (
            factor
            * (uncached * self.input + cached * cached_price + reply.tokens_out * self.output)
            / _TOKENS_PER_PRICE
        )


class PriceTable:
    """Prices of several models over time."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = sorted(prices, key=lambda price: price.since)

    def price(self, model: str, on: date) -> Price | None:
        """Newest price of exactly this model that is valid on the day."""
        candidates = (price for price in reversed(self._prices) if price.model == model and price.since <= on)
        return next(candidates, None)


class _PriceFile(FrozenModel):
    prices: tuple[Price, ...] = ()


def read_prices(path: Path = SHIPPED_PRICES) -> PriceTable:
    """Read a price table from YAML. The shipped table is empty, so every cost is unknown.

    :raises InvalidFile: if it is not YAML or an entry is not a price; each problem names its field."""
    return PriceTable(read_yaml(_PriceFile, path.read_text("utf-8", "replace"), path.name, "prices").prices)


_shipped_table = cache(read_prices)


def call_cost(
    model: str, reply: JudgeReply, *, on: date | None = None, table: PriceTable | None = None
) -> Decimal | None:
    """US dollars of one call on a day (default: today in UTC), by the returned model, else the called one.

    0 if nothing was sent or no provider was called (offline baseline); ``None`` if unknown."""
    if reply.free or reply.outcome in {Outcome.BLOCKED, Outcome.NOT_SENT}:
        return Decimal(0)
    table, on = table or _shipped_table(), on or datetime.now(UTC).date()
    price = table.price(reply.model_returned, on) or table.price(model, on)
    return price.cost(reply) if price else None


MODEL_FAMILIES = (
    "gpt", "claude", "gemini", "gemma", "llama", "qwen", "mistral", "mixtral", "deepseek", "phi", "command", "grok",
    "exaone", "hyperclova", "solar", "kanana", "glm", "yi", "granite", "nova",
)  # fmt: skip
# Names of one maker and model line.
_ALIASES = {"mixtral": "mistral", "gemma": "gemini", "chatgpt": "gpt"}
_REASONING_GPT = re.compile(r"^o[1-9](?![a-z0-9])")
_WORDS = re.compile(r"[a-z]+")


def model_family(name: str) -> str:
    """Family in the model's name, in lower case; empty if none. ``openai/gpt-4o`` gives ``gpt``."""
    basename: str = name.casefold().rpartition("/")[2]
    if _REASONING_GPT.match(basename):
        return "gpt"
    for word in _WORDS.findall(basename):
        family: str = _ALIASES.get(word, word)
        if family in MODEL_FAMILIES:
            return family
    return ""


def model_families(names: Iterable[str]) -> frozenset[str]:
    """Families of several model names."""
    return frozenset(filter(None, map(model_family, names)))


_FILE_SUFFIX = re.compile(r"\.(gguf|safetensors|bin)$")
# Routing suffixes of OpenRouter.
_ROUTER_TAGS = re.compile(r":(free|nitro|floor|exacto)$")
_LATEST = re.compile(r"[-:@](latest|default)$")
# A date or release number; a single digit such as in gpt-4 or claude-4-5 is part of the name.
_VERSION = re.compile(
    r"[-@:_]((?:20\d\d-?\d\d-?\d\d|\d\d-?20\d\d|\d\d-\d\d|\d{6}|\d{4}|0\d\d)(?:-v\d+(?::\d+)?)?|v\d+(?:\.\d+)*(?::\d+)?)$"
)


def _stem_and_version(name: str) -> tuple[str, str]:
    """Model name without path, tags and version, in lower case, and the version (empty for an alias)."""
    name = _ROUTER_TAGS.sub("", _FILE_SUFFIX.sub("", re.split(r"[/\\]", name.strip().casefold())[-1]))
    alias = _LATEST.sub("", name)
    match = _VERSION.search(alias)
    return (alias[: match.start()], match[1].replace("-", "")) if match else (alias, "")


def is_other_model(requested: str, returned: str) -> bool:
    """Return whether a server answered with another model than requested. An alias (``gpt-4o``,
    ``mistral-large-latest``) matches any of its dated versions; two different versions do not match. An empty
    returned name is accepted."""
    if not returned or requested.casefold() == returned.casefold():
        return False
    (stem, version), (other_stem, other_version) = _stem_and_version(requested), _stem_and_version(returned)
    return stem != other_stem or (version != other_version and bool(version) and bool(other_version))
