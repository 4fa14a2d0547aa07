"""Declarations of metrics: kind, scale, inputs and titles.

Decorators attach a declaration to its function; ``metrics/catalogue.py`` and ``judging/catalogue.py`` list the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import ParamSpec, Protocol

from evaluation.core.canonical import content_hash
from evaluation.core.profile_settings import Cap, CitationRules, NextStepRules
from evaluation.core.samples import AnswerSpec, CheckPhrases, Nugget, QuestionSpec, Result
from evaluation.core.scales import UNIT, ReviewForm, Scale

P = ParamSpec("P")


class MetricKind(StrEnum):
    """Source of a metric's value."""

    RULE = "rule"
    EMBEDDING = "embedding"
    JUDGE = "judge"
    # Computed from other results of the same answer.
    DERIVED = "derived"
    CUSTOM = "custom"
    IMPORTED = "imported"


#: Kinds that a judge scores by a rubric.
JUDGED_KINDS = frozenset({MetricKind.JUDGE, MetricKind.CUSTOM})


class Direction(StrEnum):
    """Better direction of a metric."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Bilingual:
    """A text in both languages of the product."""

    en: str
    ko: str

    def in_language(self, language: str) -> str:
        """Korean text for ``ko`` and ``ko-kr``, otherwise English."""
        return self.ko if language.startswith("ko") else self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """Declaration of a metric.

    ``version`` rises when values would change. ``scale`` is by default a share from 0 to 1. ``inputs``: required inputs
    besides question and answer: ``reference``, ``keywords``, ``check``, ``required_info``, ``nuggets``,
    ``ground_truth_chunk_ids``, ``contexts``, ``retrieved_ids``, ``latency``, ``embeddings``.
    ``optional_inputs``: inputs that a judge receives if they exist. ``aggregation``: ``mean``, or ``latency`` (mean,
    median and 95th percentile). ``source``: source document or paper. ``categories``: question categories it applies
    to; empty for all."""

    name: str
    version: int = 1
    kind: MetricKind = MetricKind.RULE
    scale: Scale = UNIT
    title: Bilingual
    formula: Bilingual
    source: str
    direction: Direction = Direction.HIGHER
    inputs: tuple[str, ...] = ()
    optional_inputs: tuple[str, ...] = ()
    aggregation: str = "mean"
    review_form: ReviewForm = ReviewForm.LEVEL
    rubric_family: str = ""
    categories: tuple[str, ...] = ()

    @property
    def definition_hash(self) -> str:
        """Hash of the fields that make values comparable: name, version, kind, scale, direction, form and rubric
        family."""
        form = (self.direction, self.review_form, self.rubric_family)
        return content_hash([self.name, self.version, self.kind, str(self.scale), *form])


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """A profile's settings for its metrics.

    ``matching``: ``tiers``, or ``substring`` (plain matching as in the source documents). ``checks``: phrases of the
    profile's checks for negative questions, by check name. ``phrases``: phrase lists by purpose, which replace a
    metric's own. ``citation``: citation format. ``nuggets``: facts for questions without nuggets. ``next_steps``:
    proposals after an answer. ``passing``: labels that pass a check, by check. ``caps``: upper limits of judged scores
    by flag. ``embeds``: the run has embeddings."""

    matching: str = "tiers"
    k: int = 5
    checks: Mapping[str, CheckPhrases] = field(default_factory=dict)
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    citation: CitationRules = CitationRules()  # noqa: RUF009 -- frozen
    nuggets: tuple[Nugget, ...] = ()
    next_steps: NextStepRules | None = None
    passing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    caps: tuple[Cap, ...] = ()
    embeds: bool = False


RuleFunction = Callable[[QuestionSpec, AnswerSpec, RuleSettings], Result]


#: Declares a metric that a judge scores.
judged_spec = partial(MetricSpec, kind=MetricKind.JUDGE)


class RuleMetric(Protocol):
    """A pure rule metric: a function with its declaration."""

    spec: MetricSpec

    def __call__(self, question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings, /) -> Result: ...


def _make_decorator(describe: Callable[P, MetricSpec]) -> Callable[P, Callable[[RuleFunction], RuleMetric]]:
    def declare(*args: P.args, **fields: P.kwargs) -> Callable[[RuleFunction], RuleMetric]:
        def attach(function: RuleFunction) -> RuleMetric:
            function.spec = describe(*args, **fields)  # type: ignore[attr-defined]
            return function  # type: ignore[return-value]

        return attach

    return declare


#: Decorator with the fields of a declaration; it attaches the declaration and registers nothing.
rule_metric = _make_decorator(MetricSpec)
