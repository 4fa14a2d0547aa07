"""What a metric declares about itself: its scale, what a profile tells it (how citations are written, which next steps
are proposed, what caps a score), and its description. The decorator only attaches the description;
``metrics/catalogue.py`` and ``judging/catalogue.py`` list what exists.

What a profile tells is plain data of its file or row. Forms of articles are templates, not regular expressions, because
a profile is written by people and a bad expression could keep a worker busy for hours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache, partial
from typing import Annotated, Literal, ParamSpec, Protocol, Self

from pydantic import Field, model_validator

from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, CheckPhrases, FrozenModel, Nugget, QuestionSpec, Result

_LEVELS = re.compile(r"^(?:levels )?(-?\d+)\.\.(-?\d+)$")
_REAL = re.compile(r"^(?:real )?(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?::real)?$")


class ScaleKind(StrEnum):
    """What a value of the scale is."""

    LEVELS = "levels"
    REAL = "real"
    YES_NO = "yes_no"
    CLASS = "class"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Scale:
    """A closed range of numbers, or a closed list of labels.

    ``low`` and ``high`` are inclusive; for ``yes_no`` they are 0 and 1, for ``seconds`` 0 and a day, for classes 0.
    ``labels`` is filled for classes only, in their declared order.
    """

    kind: ScaleKind
    low: float = 0.0
    high: float = 0.0
    labels: tuple[str, ...] = ()

    @classmethod
    @lru_cache(maxsize=1024)  # asked for each of a hundred thousand values
    def parse(cls, text: str) -> Scale:
        """Read ``levels 1..5`` or ``1..5``, ``0..1:real`` or ``real 0..1``, ``bool`` or ``yes_no``,
        ``class a|b`` or ``class:a|b``, ``seconds``.

        :raises ValueError: when the text is none of these or the range is empty.
        """
        text = text.strip()
        if text in {"bool", "yes_no"}:
            return cls(ScaleKind.YES_NO, 0, 1)
        if text == "seconds":
            return cls(ScaleKind.SECONDS, 0, 86_400)
        if text.startswith(("class:", "class ")):
            labels = tuple(part.strip() for part in text[6:].split("|") if part.strip())
            if len(labels) < 2 or len(set(labels)) != len(labels):
                raise ValueError(f"a class scale needs at least two different labels: {text!r}")
            return cls(ScaleKind.CLASS, labels=labels)
        if match := _LEVELS.match(text.replace("–", "-")):
            return cls._ranged(ScaleKind.LEVELS, match)
        if match := re.match(r"^(-?\d+)-(\d+)$", text):
            return cls._ranged(ScaleKind.LEVELS, match)
        if (match := _REAL.match(text)) and ("real" in text or "." in match[1] + match[2]):
            return cls._ranged(ScaleKind.REAL, match)
        raise ValueError(f"not a scale: {text!r} (1..5, 0..1:real, -2..2, bool, class:a|b)")

    @classmethod
    def _ranged(cls, kind: ScaleKind, match: re.Match[str]) -> Scale:
        low, high = float(match[1]), float(match[2])
        if low >= high:
            raise ValueError(f"the scale's lower end {low:g} is not below its upper end {high:g}")
        return cls(kind, low, high)

    def __str__(self) -> str:
        if self.kind is ScaleKind.CLASS:
            return "class " + "|".join(self.labels)
        if self.kind in {ScaleKind.YES_NO, ScaleKind.SECONDS}:
            return str(self.kind)
        return f"{self.kind} {self.low:g}..{self.high:g}"

    @property
    def levels(self) -> tuple[int, ...]:
        """The whole-number levels of a ``levels`` or ``yes_no`` scale, lowest first; empty for the others."""
        if self.kind in {ScaleKind.LEVELS, ScaleKind.YES_NO}:
            return tuple(range(int(self.low), int(self.high) + 1))
        return ()

    @property
    def width(self) -> float:
        """Upper end minus lower end."""
        return self.high - self.low

    def holds(self, value: float) -> bool:
        """Whether the number lies on the scale: finite, in range, and whole where the scale has levels."""
        if self.kind is ScaleKind.CLASS or not math.isfinite(value) or not self.low <= value <= self.high:
            return False
        return not self.levels or float(value).is_integer()

    def holds_mean(self, value: float) -> bool:
        """Whether the number can be a mean of values on the scale (levels need not be whole)."""
        return self.kind is not ScaleKind.CLASS and math.isfinite(value) and self.low <= value <= self.high


UNIT = Scale(ScaleKind.REAL, 0, 1)
PERCENT = Scale(ScaleKind.REAL, 0, 100)
YES_NO = Scale(ScaleKind.YES_NO, 0, 1)


NUMBER = "{n}"  # stands for a number in the form of an article
_Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
_Form = Annotated[str, Field(min_length=4, max_length=80, pattern=r"\{n\}")]


class CitationLevels(FrozenModel):
    """The score of the best reference of an answer: name and article side by side, both but apart, one of them, a
    vague mention, none."""

    adjacent: _Level = 1.0
    apart: _Level = 0.8
    one: _Level = 0.5
    vague: _Level = 0.3
    none: _Level = 0.0

    @model_validator(mode="after")
    def _descend(self) -> Self:
        levels = [self.adjacent, self.apart, self.one, self.vague, self.none]
        if levels != sorted(levels, reverse=True):
            raise ValueError("the levels of citations do not descend from adjacent to none")
        return self


class CitationRules(FrozenModel):
    """How answers cite. ``articles`` are forms such as ``Section {n}`` or ``제{n}조`` and replace the built-in Korean
    ones; ``names`` are names of regulations known beside those that end in 규정, 학칙 and the like; ``vague`` are
    words that only mention rules, and replace the built-in ones."""

    articles: tuple[_Form, ...] = ()
    names: tuple[_Word, ...] = ()
    vague: tuple[_Word, ...] = ()
    levels: CitationLevels = CitationLevels()


class Condition(FrozenModel):
    """When something applies: every list that is not empty must hold. The question holds any of ``question``, the
    answer has nothing to say about any of ``answer_lacks``, a retrieved passage carries any of ``tags``."""

    question: tuple[_Word, ...] = ()
    answer_lacks: tuple[_Word, ...] = ()
    tags: tuple[_Word, ...] = ()

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if not (self.question or self.answer_lacks or self.tags):
            raise ValueError("a condition that names nothing would always hold")
        return self


class NextStep(Condition):
    """A question to suggest to the user, or an action to take, in both languages of the product."""

    kind: Literal["suggestion", "action"]
    en: _Word
    ko: _Word


class Urgency(Condition):
    """A level of urgency above ``low``."""

    level: Literal["medium", "high"]


class NextStepRules(FrozenModel):
    """What to propose after an answer. Every step that applies is proposed; the highest urgency that applies counts,
    and ``low`` where none does."""

    steps: tuple[NextStep, ...] = ()
    urgency: tuple[Urgency, ...] = ()


class Cap(FrozenModel):
    """The most a judged metric may be where the answer has a flag of a kind (a verdict of ``hallucination_flags``)."""

    metric: _Word
    flag: Literal["unknown_phone", "forbidden_name", "avoidance"]
    at_most: Annotated[float, Field(allow_inf_nan=False)]


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


class ReviewForm(StrEnum):
    """What an expert rates the metric by."""

    LEVEL = "level"
    CLAIMS = "claims"
    NUGGETS = "nuggets"
    CONTEXTS = "contexts"
    YES_NO = "yes_no"
    CLASS = "class"
    NONE = "none"


def review_form_of(scale: Scale) -> ReviewForm:
    """What an expert rates a metric of this scale by, where it has no parts."""
    forms = {ScaleKind.CLASS: ReviewForm.CLASS, ScaleKind.YES_NO: ReviewForm.YES_NO}
    return forms.get(scale.kind, ReviewForm.LEVEL)


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
