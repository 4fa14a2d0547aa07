"""Declaration of a metric: its kind, scale, inputs and titles. The decorators attach it to the function;
``metrics/catalogue.py`` and ``judging/catalogue.py`` list the metrics."""

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


class Kind(StrEnum):
    """Who gives the figure."""

    RULE = "rule"
    EMBEDDING = "embedding"
    JUDGE = "judge"
    DERIVED = "derived"  # computed from other results of the same answer
    CUSTOM = "custom"
    IMPORTED = "imported"


#: Kinds whose values a judge gives by a rubric.
JUDGED = frozenset({Kind.JUDGE, Kind.CUSTOM})


class Direction(StrEnum):
    """Whether more is better, less is better, or neither."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Bilingual:
    """A text of the shipped data in both languages of the product."""

    en: str
    ko: str

    def in_language(self, language: str) -> str:
        """The Korean text for ``ko`` and ``ko-kr``, the English one otherwise."""
        return self.ko if language.startswith("ko") else self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """A metric's description. ``version`` rises when figures would move; the scale is a share unless another is named.
    ``inputs`` names what it needs beside question and answer: ``keywords``, ``check``, ``reference``, ``contexts``,
    ``latency``, ``embeddings``; ``optional_inputs`` what a judge is shown where it is there. ``aggregation`` is
    ``mean`` or ``latency`` (mean, median and 95th percentile). ``source`` is the source document or paper;
    ``categories`` the categories of questions it applies to, where not to all."""

    name: str
    version: int = 1
    kind: Kind = Kind.RULE
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
        """Hash of what makes figures comparable: name, version, scale, direction, form and rubric family."""
        form = (self.direction, self.review_form, self.rubric_family)
        return content_hash([self.name, self.version, self.kind, str(self.scale), *form])


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What a profile sets for its metrics. ``matching`` is ``tiers`` (ours) or ``substring`` (the sources'
    plain matching). ``checks`` are the profile's own checks for negative questions by name, each with its phrases.
    ``phrases`` are its lists of phrases by purpose, which replace a metric's own. ``citation`` says how answers cite,
    ``nuggets`` are the facts of its domain for questions that bring none, ``next_steps`` what may be proposed after an
    answer. ``passing`` are the labels with which a judged answer passes the profile's own checks, ``caps`` what flags
    make of judged scores. ``embeds`` says that the run has embeddings."""

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


#: Describes a metric whose value a judge gives.
judged_spec = partial(MetricSpec, kind=Kind.JUDGE)


class RuleMetric(Protocol):
    """A pure rule metric: a function that carries its description."""

    spec: MetricSpec

    def __call__(self, question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings, /) -> Result: ...


def _declaring(describe: Callable[P, MetricSpec]) -> Callable[P, Callable[[RuleFunction], RuleMetric]]:
    def declare(*args: P.args, **fields: P.kwargs) -> Callable[[RuleFunction], RuleMetric]:
        def attach(function: RuleFunction) -> RuleMetric:
            function.spec = describe(*args, **fields)  # type: ignore[attr-defined]
            return function  # type: ignore[return-value]

        return attach

    return declare


#: Takes the fields of a description and attaches it to a pure function; nothing is registered by this.
rule_metric = _declaring(MetricSpec)
