"""A rubric: the questions a judge and an expert answer about an answer, with every level or label anchored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluation.core.canonical import content_hash
from evaluation.core.errors import InvalidFile, Problem, UnknownName
from evaluation.judging.criteria.terms import CriterionTerms
from evaluation.judging.rubric_parts import Label, Level, RubricMetric, RubricStep
from evaluation.judging.shapes import closed

SHIPPED = Path(__file__).parent / "rubrics"
Text = Annotated[str, Field(min_length=1)]
__all__ = ["Label", "Level", "Rubric", "RubricMetric", "RubricStep", "parse_rubric", "shipped_rubric"]


class Rubric(BaseModel):
    """A version of a rubric family in one language. Immutable; an edit makes a new version.

    ``instruction`` opens the judge's system message, ``closing`` follows the data and has the one slot
    ``{metrics}``, ``repair`` asks once more after a reply that could not be read. A family that asks several times
    has ``steps`` instead of a closing. ``criterion`` is there where the rubric was made from a custom criterion.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    family: Text
    version: Annotated[int, Field(ge=1)]
    language: Literal["ko", "en"]
    instruction: Text
    closing: str = ""
    repair: Text
    steps: tuple[RubricStep, ...] = ()
    metrics: Annotated[tuple[RubricMetric, ...], Field(min_length=1)]
    criterion: CriterionTerms | None = None

    @model_validator(mode="after")
    def _names_are_unique(self) -> Rubric:
        if len(set(self.names)) != len(self.metrics):
            raise ValueError(f"a metric is there twice: {self.names}")
        named = [step.name for step in self.steps]
        if len(set(named)) != len(named):
            raise ValueError(f"a step is there twice: {named}")
        if unknown := {step.metric for step in self.steps if step.metric} - set(self.names):
            raise ValueError(f"a step asks for what the rubric does not hold: {sorted(unknown)}")
        return self

    @model_validator(mode="after")
    def _closes_once(self) -> Rubric:
        if bool(self.closing.strip()) == bool(self.steps):
            raise ValueError("a rubric has either a closing or steps")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics of the family in the order of the rubric."""
        return tuple(metric.name for metric in self.metrics)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content without defaults, so that a field added later changes no older hash; equal content
        is the same rubric, whatever file it came from."""
        return content_hash(self.model_dump(exclude_defaults=True))

    def __hash__(self) -> int:
        """By content, so that what is made of a rubric can be kept for it."""
        return hash(self.content_hash)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields, whose hash is its own."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("content_hash", None)
        return copied

    @property
    def text(self) -> str:
        """The judge's system message when every metric of the family applies; of all its steps where it has some."""
        if not self.steps:
            return self.system_text(self.names)
        return "\n\n".join(self.step_text(step.name) for step in self.steps)

    def metric(self, name: str) -> RubricMetric:
        """The metric's question and levels.

        :raises UnknownName: when the family does not hold it.
        """
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise UnknownName("metric of the rubric", name, self.names)

    def step(self, name: str) -> RubricStep:
        """The step of that name.

        :raises UnknownName: when the rubric does not have it.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise UnknownName("step of the rubric", name, [step.name for step in self.steps])

    def system_text(self, names: Sequence[str]) -> str:
        """The instruction followed by question and levels of the named metrics, in the rubric's order."""
        asked = [metric.text for metric in self.metrics if metric.name in names]
        return "\n\n".join([self.instruction.strip(), *asked])

    def step_text(self, name: str) -> str:
        """The instruction, the step's own, and question and labels of the metric whose parts it asks about."""
        step = self.step(name)
        asked = [self.metric(step.metric).text] if step.metric else []
        return "\n\n".join([self.instruction.strip(), step.instruction.strip(), *asked])

    def reply_schema(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Strict JSON schema of a reply: for each metric the reason first, then the score or label."""
        wanted = [metric for metric in self.metrics if names is None or metric.name in names]
        return closed({metric.name: metric.verdict_schema for metric in wanted})


def parse_rubric(text: str, *, file: str = "") -> Rubric:
    """Read a rubric from YAML.

    :raises InvalidFile: when the text is not YAML or not a complete rubric; each problem names its field.
    """
    try:
        return Rubric.model_validate(yaml.load(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as error:
        raise InvalidFile([Problem("rubric_not_yaml", file=file, params={"error": str(error)})]) from error
    except ValidationError as error:
        problems = [
            Problem("rubric_invalid", file, field=".".join(map(str, e["loc"])), params={"error": e["msg"]})
            for e in error.errors()
        ]
        raise InvalidFile(problems) from error


@cache
def shipped_rubrics() -> tuple[Rubric, ...]:
    """Every rubric that comes with the product, sorted by family and language."""
    return tuple(parse_rubric(path.read_text("utf-8"), file=path.name) for path in sorted(SHIPPED.glob("*.yaml")))


def shipped_rubric(family: str, language: str) -> Rubric:
    """The shipped rubric of a family: Korean for ``ko`` and ``ko-kr``, English otherwise.

    :raises UnknownName: for a family without a shipped rubric.
    """
    wanted = "ko" if language.startswith("ko") else "en"
    for rubric in shipped_rubrics():
        if (rubric.family, rubric.language) == (family, wanted):
            return rubric
    raise UnknownName("rubric family", family, sorted({r.family for r in shipped_rubrics()}))
