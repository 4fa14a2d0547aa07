"""A rubric: the questions a judge and an expert answer about an answer, with every level or label anchored; the steps
of longer families; and the JSON shapes of the replies it asks for, with the check that a value fits one.

A rubric made from a custom criterion holds all that makes its one metric what it is, so that a run that pins the
rubric's version judges by it whatever is activated later. Of JSON schemas only what every structured-output server
knows is used: objects whose members are all required, lists, closed lists of values; no bounds, no null. Lists stand
for what the judge finds, objects with one member per part for what it is asked about, so that no part can be left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator

from evaluation.core.canonical import content_hash
from evaluation.core.described import read_yaml
from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Direction
from evaluation.core.samples import FrozenModel
from evaluation.core.scales import Scale, ScaleKind

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
ANYTHING: Schema = {}  # for reading only: whatever stands there is judged later


def closed(members: Mapping[str, Schema]) -> dict[str, Any]:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": dict(members),
        "required": list(members),
        "additionalProperties": False,
    }


def list_of(item: Schema) -> dict[str, Any]:
    """A list of any length."""
    return {"type": "array", "items": dict(item)}


def one_of(values: Sequence[str]) -> dict[str, Any]:
    """One of these texts."""
    return {"type": "string", "enum": list(values)}


def whole_number(values: Sequence[int]) -> dict[str, Any]:
    """One of these whole numbers."""
    return {"type": "integer", "enum": list(values)}


def conforms(value: Any, schema: Schema) -> bool:
    """Whether a JSON value has the shape. ``true`` is no number, ``4.0`` no whole number."""
    if "enum" in schema:
        return any(value == known and type(value) is type(known) for known in schema["enum"])
    match schema.get("type"):
        case "object":
            members: Mapping[str, Schema] = schema["properties"]
            same = isinstance(value, dict) and value.keys() == members.keys()
            return same and all(conforms(value[name], member) for name, member in members.items())
        case "array":
            return isinstance(value, list) and all(conforms(item, schema["items"]) for item in value)
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return not schema


SHIPPED = Path(__file__).parent / "rubrics"
_Part = TypeVar("_Part", "RubricMetric", "RubricStep")
Text = Annotated[str, Field(min_length=1)]
Anchor = Annotated[str, Field(min_length=1, max_length=120)]


class Level(FrozenModel):
    """One anchored level; the text is read by the judge and, beside its key, by the reviewer, so it is short."""

    model_config = ConfigDict(strict=True)
    value: int | float
    text: Anchor


class Label(FrozenModel):
    """A class, or a verdict on a part of the answer, and when it is right."""

    model_config = ConfigDict(strict=True)
    label: Text
    text: Anchor


class RubricMetric(FrozenModel):
    """What one metric of the family asks.

    With ``levels`` a level from 1 to 5, say, is given; a ``scale`` beside them (``real 0..1``) makes them anchors of
    a range, any number of which may be given. With ``labels`` alone one of them is given; with ``labels`` and a
    ``scale`` they are the verdicts on parts of the answer, from which the figure is computed. ``score_map`` are
    pairs of what the judge says and what then counts, both rising; between them one reads on a straight line, outside
    of them the nearest counts.
    """

    name: Text
    question: Text
    scale: str = ""
    levels: tuple[Level, ...] = ()
    labels: tuple[Label, ...] = ()
    score_map: tuple[tuple[float, float], ...] = ()

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

    @model_validator(mode="after")
    def _map_rises_on_the_scale(self) -> RubricMetric:
        said, counts = [one for one, _ in self.score_map], [one for _, one in self.score_map]
        if self.score_map and self.labels:
            raise ValueError(f"{self.name} has labels, which no score map reads")
        if len(self.score_map) == 1 or said != sorted(set(said)) or counts != sorted(counts):
            raise ValueError(f"the score map of {self.name} does not rise")
        if self.score_map and not all(map(self.read_scale().holds_mean, (*said, *counts))):
            raise ValueError(f"the score map of {self.name} leaves the scale {self.read_scale()}")
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


class RubricStep(FrozenModel):
    """One of several requests of a family: its own instruction and closing, and the metric whose labels it asks for."""

    name: Text
    instruction: Text
    closing: Text
    metric: str = ""


FAMILY_PREFIX = "criterion:"  # rubric families of criteria; no built-in family and no criterion can have a colon


class Slot(StrEnum):
    """What a judge may be shown beside question and answer. The list is closed: a prompt has no other places."""

    REFERENCE = "reference"
    CONTEXTS = "contexts"
    REQUIRED_INFO = "required_info"
    PERSONA = "persona"
    HISTORY = "history"
    CLARIFICATION_OK = "clarification_ok"


class Offline(StrEnum):
    """By which of its counts of words the offline baseline stands in for the judge; ``none``: it does not."""

    NONE = "none"
    CORRECTNESS = "correctness"
    FAITHFULNESS = "faithfulness"
    COMPLETENESS = "completeness"
    RELEVANCY = "relevancy"


class CriterionTerms(FrozenModel):
    """``metric_version`` is the version of the metric definition, which rises only with scale, levels or direction.
    ``needs`` are slots without which the criterion does not apply, ``sees`` those shown where they are there;
    ``categories`` the categories of questions it applies to, all where empty."""

    metric_version: Annotated[int, Field(ge=1)]
    title_en: str
    title_ko: str
    direction: Direction
    needs: tuple[Slot, ...] = ()
    sees: tuple[Slot, ...] = ()
    categories: tuple[str, ...] = ()
    offline: Offline = Offline.NONE


def family_of_criterion(name: str) -> str:
    """The rubric family of a criterion."""
    return FAMILY_PREFIX + name


def is_criterion(family: str) -> bool:
    """Whether a rubric family is that of a custom criterion."""
    return family.startswith(FAMILY_PREFIX)


class Rubric(FrozenModel):
    """A version of a rubric family in one language. Immutable; an edit makes a new version.

    ``instruction`` opens the judge's system message, ``closing`` follows the data and has the one slot
    ``{metrics}``, ``repair`` asks once more after a reply that could not be read. A family that asks several times
    has ``steps`` instead of a closing. ``criterion`` is there where the rubric was made from a custom criterion.
    ``mapped_from`` is the content hash of the version whose words these are, where only score maps were added: judges
    are asked alike, so that its replies serve both.
    """

    family: Text
    version: Annotated[int, Field(ge=1)]
    language: Literal["ko", "en"]
    instruction: Text
    closing: str = ""
    repair: Text
    steps: tuple[RubricStep, ...] = ()
    metrics: Annotated[tuple[RubricMetric, ...], Field(min_length=1)]
    criterion: CriterionTerms | None = None
    mapped_from: str = ""

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

    @property
    def asked_hash(self) -> str:
        """The hash under which judges are asked."""
        return self.mapped_from or self.content_hash

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
        return _named(self.metrics, name, "metric of the rubric")

    def step(self, name: str) -> RubricStep:
        """The step of that name.

        :raises UnknownName: when the rubric does not have it.
        """
        return _named(self.steps, name, "step of the rubric")

    def system_text(self, names: Sequence[str]) -> str:
        """The instruction followed by question and levels of the named metrics, in the rubric's order."""
        asked = [metric.text for metric in self.metrics if metric.name in names]
        return "\n\n".join([self.instruction.strip(), *asked])

    def step_text(self, name: str) -> str:
        """The instruction, the step's own, and question and labels of the metric whose parts it asks about."""
        step = self.step(name)
        asked = [self.metric(step.metric).text] if step.metric else []
        return "\n\n".join([self.instruction.strip(), step.instruction.strip(), *asked])


def _named(parts: Sequence[_Part], name: str, kind: str) -> _Part:
    for part in parts:
        if part.name == name:
            return part
    raise UnknownName(kind, name, [part.name for part in parts])


def parse_rubric(text: str, *, file: str = "") -> Rubric:
    """Read a rubric from YAML.

    :raises InvalidFile: as :func:`read_yaml`.
    """
    return read_yaml(Rubric, text, file, "rubric")


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
