"""Settings that a profile passes to metrics: citation formats, next steps and score caps.

They are plain data of the profile. Article forms are templates instead of regular expressions, because a bad expression
could block a worker for hours."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluation.core.samples import FrozenModel

# Placeholder for a number in an article form.
NUMBER = "{n}"
_Level = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
_Form = Annotated[str, Field(min_length=4, max_length=80, pattern=r"\{n\}")]


class CitationLevels(FrozenModel):
    """Score of an answer's best reference.

    ``adjacent``: name and article together; ``apart``: both, separated; ``one``: one of them; ``vague``: a vague
    mention."""

    adjacent: _Level = 1.0
    apart: _Level = 0.8
    one: _Level = 0.5
    vague: _Level = 0.3
    none: _Level = 0.0

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        levels = [self.adjacent, self.apart, self.one, self.vague, self.none]
        if levels != sorted(levels, reverse=True):
            raise ValueError("the levels of citations do not descend from adjacent to none")
        return self


class CitationRules(FrozenModel):
    """Citation formats.

    ``articles``: forms such as ``Section {n}`` or ``제{n}조``, which replace the built-in Korean ones. ``names``:
    regulation names in addition to those that end in 규정, 학칙 and the like. ``vague``: words that only mention rules,
    which replace the built-in ones."""

    articles: tuple[_Form, ...] = ()
    names: tuple[_Word, ...] = ()
    vague: tuple[_Word, ...] = ()
    levels: CitationLevels = CitationLevels()


class Condition(FrozenModel):
    """Condition on an answer: every non-empty list must hold.

    The question contains any of ``question``, the answer contains none of the information in some ``answer_lacks``, a
    retrieved passage has any of ``tags``."""

    question: tuple[_Word, ...] = ()
    answer_lacks: tuple[_Word, ...] = ()
    tags: tuple[_Word, ...] = ()

    @model_validator(mode="after")
    def _require_condition(self) -> Self:
        if not (self.question or self.answer_lacks or self.tags):
            raise ValueError("a condition that names nothing would always hold")
        return self


class NextStep(Condition):
    """A suggested question or an action, in both languages of the product."""

    kind: Literal["suggestion", "action"]
    en: _Word
    ko: _Word


class Urgency(Condition):
    """Condition for an urgency above ``low``."""

    level: Literal["medium", "high"]


class NextStepRules(FrozenModel):
    """Proposals after an answer: all applicable steps, and the highest applicable urgency (default ``low``)."""

    steps: tuple[NextStep, ...] = ()
    urgency: tuple[Urgency, ...] = ()


class Cap(FrozenModel):
    """Upper limit of a judged metric for answers with a flag (a verdict of ``hallucination_flags``)."""

    metric: _Word
    flag: Literal["unknown_phone", "forbidden_name", "avoidance"]
    at_most: Annotated[float, Field(allow_inf_nan=False)]
