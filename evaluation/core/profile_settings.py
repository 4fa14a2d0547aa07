"""Settings that a profile passes to metrics: how citations are written, which next steps are proposed, what
caps a score.

They are plain data of the profile's file or row. Forms of articles are templates, not regular expressions, because
profiles are written by people and a bad expression could keep a worker busy for hours.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluation.core.samples import FrozenModel

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
