"""A rubric: the questions a judge and an expert answer about an answer, with every level of the scale anchored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluation.canonical import content_hash
from evaluation.errors import InvalidFile, Problem, UnknownName

SHIPPED = Path(__file__).parent / "rubrics"
Text = Annotated[str, Field(min_length=1)]


class Level(BaseModel):
    """One anchored level; the text is read by the judge and, beside its key, by the reviewer, so it is short."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    value: int
    text: Annotated[str, Field(min_length=1, max_length=120)]


class RubricMetric(BaseModel):
    """What one metric of the family asks, and its levels, lowest first and without a gap."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Text
    question: Text
    levels: Annotated[tuple[Level, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _every_level_is_anchored(self) -> RubricMetric:
        values = [level.value for level in self.levels]
        if values != list(range(values[0], values[0] + len(values))):
            raise ValueError(f"the levels of {self.name} are not every whole number in order: {values}")
        return self

    @property
    def values(self) -> tuple[int, ...]:
        """The scale's values, lowest first."""
        return tuple(level.value for level in self.levels)


class Rubric(BaseModel):
    """A version of a rubric family in one language. Immutable; an edit makes a new version.

    ``instruction`` opens the judge's system message, ``closing`` follows the data and has the one slot
    ``{metrics}``, ``repair`` asks once more after a reply that could not be read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    family: Text
    version: Annotated[int, Field(ge=1)]
    language: Literal["ko", "en"]
    instruction: Text
    closing: Text
    repair: Text
    metrics: Annotated[tuple[RubricMetric, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Rubric:
        if len(set(self.names)) != len(self.metrics):
            raise ValueError(f"a metric is there twice: {self.names}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics of the family in the order of the rubric."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the whole content; equal content is the same rubric, whatever file it came from."""
        return content_hash(self.model_dump())

    @property
    def text(self) -> str:
        """The judge's system message when every metric of the family applies."""
        return self.system_text(self.names)

    def metric(self, name: str) -> RubricMetric:
        """The metric's question and levels.

        :raises UnknownName: when the family does not hold it.
        """
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise UnknownName("metric of the rubric", name, self.names)

    def system_text(self, names: Sequence[str]) -> str:
        """The instruction followed by question and levels of the named metrics, in the rubric's order."""
        parts = [self.instruction.strip()]
        for metric in self.metrics:
            if metric.name in names:
                levels = "\n".join(f"  {level.value}: {level.text}" for level in reversed(metric.levels))
                parts.append(f"## {metric.name}\n{metric.question.strip()}\n{levels}")
        return "\n\n".join(parts)

    def reply_schema(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Strict JSON schema of a reply: for each metric the reason first, then the whole-number score."""
        wanted = [metric for metric in self.metrics if names is None or metric.name in names]
        return _closed({metric.name: _verdict_schema(metric) for metric in wanted})


def _verdict_schema(metric: RubricMetric) -> dict[str, Any]:
    return _closed({"reason": {"type": "string"}, "score": {"type": "integer", "enum": list(metric.values)}})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


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
