"""The parts of a rubric: what one metric asks with its anchored levels or labels, and the steps of longer families."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluation.core.scales import Scale, ScaleKind
from evaluation.judging.shapes import ANYTHING, NUMBER, TEXT, closed, one_of, whole_number

Text = Annotated[str, Field(min_length=1)]
Anchor = Annotated[str, Field(min_length=1, max_length=120)]


class Level(BaseModel):
    """One anchored level; the text is read by the judge and, beside its key, by the reviewer, so it is short."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    value: int | float
    text: Anchor


class Label(BaseModel):
    """A class, or a verdict on a part of the answer, and when it is right."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    label: Text
    text: Anchor


class RubricMetric(BaseModel):
    """What one metric of the family asks.

    With ``levels`` a level from 1 to 5, say, is given; a ``scale`` beside them (``real 0..1``) makes them anchors of
    a range, any number of which may be given. With ``labels`` alone one of them is given; with ``labels`` and a
    ``scale`` they are the verdicts on parts of the answer, from which the figure is computed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Text
    question: Text
    scale: str = ""
    levels: tuple[Level, ...] = ()
    labels: tuple[Label, ...] = ()

    @model_validator(mode="after")
    def _every_level_is_anchored(self) -> RubricMetric:
        if bool(self.levels) == bool(self.labels):
            raise ValueError(f"{self.name} has either levels or labels")
        if len(self.levels) + len(self.labels) < 2:
            raise ValueError(f"{self.name} has less than two levels")
        if len({label.label for label in self.labels}) != len(self.labels):
            raise ValueError(f"a label of {self.name} is there twice")
        values = [level.value for level in self.levels]
        if self.levels and not self.scale and values != list(range(int(values[0]), int(values[0]) + len(values))):
            raise ValueError(f"the levels of {self.name} are not every whole number in order: {values}")
        if self.levels and self.scale:
            scale = Scale.parse(self.scale)
            if values != sorted(set(values)) or (values[0], values[-1]) != (scale.low, scale.high):
                raise ValueError(
                    f"the levels of {self.name} do not rise from {scale.low:g} to {scale.high:g}: {values}"
                )
        return self

    @property
    def values(self) -> tuple[int | float, ...]:
        """The anchored values, lowest first; none for labels."""
        return tuple(level.value for level in self.levels)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The labels, in the rubric's order."""
        return tuple(label.label for label in self.labels)

    def read_scale(self) -> Scale:
        """The scale of the metric's figure."""
        if self.scale:
            return Scale.parse(self.scale)
        if self.labels:
            return Scale(ScaleKind.CLASS, labels=self.verdicts)
        return Scale(ScaleKind.LEVELS, float(self.levels[0].value), float(self.levels[-1].value))

    @property
    def text(self) -> str:
        """The question with its levels, the highest first, or its labels: a section of the system message."""
        anchors = [f"  {level.value}: {level.text}" for level in reversed(self.levels)]
        anchors += [f"  {label.label}: {label.text}" for label in self.labels]
        return "\n".join([f"## {self.name}", self.question.strip(), *anchors])

    @property
    def verdict_schema(self) -> dict[str, Any]:
        """The member of a reply that gives the metric: the reason first, then score or label."""
        if self.labels:
            return closed({"reason": TEXT, "label": one_of(self.verdicts)})
        if self.scale and not self.read_scale().levels:
            return closed({"reason": TEXT, "score": NUMBER})
        return closed({"reason": TEXT, "score": whole_number([int(value) for value in self.values])})

    @property
    def verdict_shape(self) -> dict[str, Any]:
        """The same with whatever stands as score or label, so that a value off the scale can be told from prose."""
        return closed({"reason": TEXT, "label" if self.labels else "score": ANYTHING})


class RubricStep(BaseModel):
    """One of several requests of a family: its own instruction and closing, and the metric whose labels it asks for."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Text
    instruction: Text
    closing: Text
    metric: str = ""
