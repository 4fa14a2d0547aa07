"""Rubrics: questions with anchored levels or labels, the steps of multi-call families, and the JSON schemas of replies.

A rubric of a custom criterion contains its full metric definition, so a run that pins it is unaffected by later
activations. Schemas use only what every structured-output server supports: objects with all members required, lists,
enums; no bounds, no null. Lists hold items that the judge finds; objects have one member per requested part, so that no
part can be omitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator

from evaluation.core.canonical import content_hash
from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Direction
from evaluation.core.samples import FrozenModel
from evaluation.core.scales import Scale, ScaleKind
from evaluation.core.yaml_models import read_yaml

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
# For parsing only: the value is checked later.
ANY_VALUE: Schema = {}


def object_schema(members: Mapping[str, Schema]) -> dict[str, Any]:
    """Schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": dict(members),
        "required": list(members),
        "additionalProperties": False,
    }


def list_schema(item: Schema) -> dict[str, Any]:
    """Schema of a list of any length."""
    return {"type": "array", "items": dict(item)}


def choice_schema(values: Sequence[str]) -> dict[str, Any]:
    """Schema of a string from a closed list."""
    return {"type": "string", "enum": list(values)}


def integer_schema(values: Sequence[int]) -> dict[str, Any]:
    """Schema of an integer from a closed list."""
    return {"type": "integer", "enum": list(values)}


def conforms(value: Any, schema: Schema) -> bool:
    """Return whether a JSON value matches the schema. ``true`` is not a number, and ``4.0`` is not an integer."""
    if "enum" in schema:
        return any(value == allowed and type(value) is type(allowed) for allowed in schema["enum"])
    match schema.get("type"):
        case "object":
            members: Mapping[str, Schema] = schema["properties"]
            same_keys = isinstance(value, dict) and value.keys() == members.keys()
            return same_keys and all(conforms(value[name], member) for name, member in members.items())
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


SHIPPED_DIRECTORY = Path(__file__).parent / "rubrics"
_Named = TypeVar("_Named", "RubricMetric", "RubricStep")
Text = Annotated[str, Field(min_length=1)]
Anchor = Annotated[str, Field(min_length=1, max_length=120)]


class Level(FrozenModel):
    """One anchored level. The text is short, because reviewers read it beside the key."""

    model_config = ConfigDict(strict=True)
    value: int | float
    text: Anchor


class Label(FrozenModel):
    """A class, or a verdict on a part of the answer, with the text that says when it applies."""

    model_config = ConfigDict(strict=True)
    label: Text
    text: Anchor


class RubricMetric(FrozenModel):
    """Question and answer scale of one metric.

    - ``levels`` alone: one of the levels is given, such as 1 to 5.
    - ``levels`` with a ``scale`` (``real 0..1``): the levels anchor a range, and any number in it may be given.
    - ``labels`` alone: one of the labels is given.
    - ``labels`` with a ``scale``: verdicts on parts of the answer, from which the score is computed.

    ``score_map`` holds pairs of judge score and mapped score, both rising. Scores between two pairs are interpolated
    linearly; scores outside use the nearest pair."""

    name: Text
    question: Text
    scale: str = ""
    levels: tuple[Level, ...] = ()
    labels: tuple[Label, ...] = ()
    score_map: tuple[tuple[float, float], ...] = ()

    @model_validator(mode="after")
    def _levels_are_valid(self) -> RubricMetric:
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
    def _score_map_is_valid(self) -> RubricMetric:
        judge_scores, mapped_scores = [score for score, _ in self.score_map], [score for _, score in self.score_map]
        if self.score_map and self.labels:
            raise ValueError(f"{self.name} has labels, which no score map reads")
        if (
            len(self.score_map) == 1
            or judge_scores != sorted(set(judge_scores))
            or mapped_scores != sorted(mapped_scores)
        ):
            raise ValueError(f"the score map of {self.name} does not rise")
        if self.score_map and not all(map(self.read_scale().contains_mean, (*judge_scores, *mapped_scores))):
            raise ValueError(f"the score map of {self.name} leaves the scale {self.read_scale()}")
        return self

    @property
    def values(self) -> tuple[int | float, ...]:
        """Anchored values, lowest first; empty for labels."""
        return tuple(level.value for level in self.levels)

    @property
    def verdicts(self) -> tuple[str, ...]:
        return tuple(label.label for label in self.labels)

    def read_scale(self) -> Scale:
        """Scale of the metric's score."""
        if self.scale:
            return Scale.parse(self.scale)
        if self.labels:
            return Scale(ScaleKind.CLASS, labels=self.verdicts)
        return Scale(ScaleKind.LEVELS, float(self.levels[0].value), float(self.levels[-1].value))

    @property
    def text(self) -> str:
        """Section of the system message: the question with its levels, highest first, or its labels."""
        anchors = [f"  {level.value}: {level.text}" for level in reversed(self.levels)]
        anchors += [f"  {label.label}: {label.text}" for label in self.labels]
        return "\n".join([f"## {self.name}", self.question.strip(), *anchors])

    @property
    def verdict_schema(self) -> dict[str, Any]:
        """Schema of the metric's member of a reply: the reason first, then the score or label."""
        if self.labels:
            return object_schema({"reason": TEXT, "label": choice_schema(self.verdicts)})
        if self.scale and not self.read_scale().levels:
            return object_schema({"reason": TEXT, "score": NUMBER})
        return object_schema({"reason": TEXT, "score": integer_schema([int(value) for value in self.values])})

    @property
    def lenient_verdict_schema(self) -> dict[str, Any]:
        """Verdict schema that accepts any score or label, so that an off-scale value differs from an unreadable
        reply."""
        return object_schema({"reason": TEXT, "label" if self.labels else "score": ANY_VALUE})


class RubricStep(FrozenModel):
    """One of several requests of a family: instruction, closing and the metric whose labels it asks for."""

    name: Text
    instruction: Text
    closing: Text
    metric: str = ""


# Rubric families of criteria; no built-in family and no criterion name contains a colon.
FAMILY_PREFIX = "criterion:"


class PromptSlot(StrEnum):
    """Input that a judge may see besides question and answer. Prompts have no other slots."""

    REFERENCE = "reference"
    CONTEXTS = "contexts"
    REQUIRED_INFO = "required_info"
    PERSONA = "persona"
    HISTORY = "history"
    CLARIFICATION_OK = "clarification_ok"


class OfflineMeasure(StrEnum):
    """Word measure by which the offline baseline scores a criterion; ``none``: not applicable to the baseline."""

    NONE = "none"
    CORRECTNESS = "correctness"
    FAITHFULNESS = "faithfulness"
    COMPLETENESS = "completeness"
    RELEVANCY = "relevancy"


class CriterionTerms(FrozenModel):
    """Metric definition of a criterion inside its rubric.

    ``metric_version`` rises only with scale, levels or direction. The criterion does not apply without its ``needs``;
    ``sees`` are shown if present. ``categories`` are the question categories it applies to, all if empty."""

    metric_version: Annotated[int, Field(ge=1)]
    title_en: str
    title_ko: str
    direction: Direction
    needs: tuple[PromptSlot, ...] = ()
    sees: tuple[PromptSlot, ...] = ()
    categories: tuple[str, ...] = ()
    offline: OfflineMeasure = OfflineMeasure.NONE


def criterion_family(name: str) -> str:
    return FAMILY_PREFIX + name


def is_criterion(family: str) -> bool:
    return family.startswith(FAMILY_PREFIX)


class Rubric(FrozenModel):
    """A version of a rubric family in one language. Immutable; an edit creates a new version.

    ``instruction`` opens the system message, ``closing`` follows the data and contains the slot ``{metrics}``,
    ``repair`` asks again after an unreadable reply. A family with several calls has ``steps`` instead of a closing.
    ``criterion`` is set for rubrics of custom criteria. ``mapped_from`` is the content hash of the version with the
    same texts, if only score maps were added; both versions send equal prompts and share cached replies."""

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
        step_names = [step.name for step in self.steps]
        if len(set(step_names)) != len(step_names):
            raise ValueError(f"a step is there twice: {step_names}")
        if unknown := {step.metric for step in self.steps if step.metric} - set(self.names):
            raise ValueError(f"a step asks for what the rubric does not hold: {sorted(unknown)}")
        return self

    @model_validator(mode="after")
    def _has_closing_or_steps(self) -> Rubric:
        if bool(self.closing.strip()) == bool(self.steps):
            raise ValueError("a rubric has either a closing or steps")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the content without defaults. A new optional field therefore changes no existing hash."""
        return content_hash(self.model_dump(exclude_defaults=True))

    @property
    def prompt_hash(self) -> str:
        """Hash of the prompt texts, shared by versions that differ only in score maps."""
        return self.mapped_from or self.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with other fields and a recomputed hash."""
        rubric = super().model_copy(update=update, deep=deep)
        rubric.__dict__.pop("content_hash", None)
        return rubric

    @property
    def text(self) -> str:
        """System message with all metrics, or of all steps if the family has steps."""
        if not self.steps:
            return self.system_text(self.names)
        return "\n\n".join(self.step_text(step.name) for step in self.steps)

    def metric(self, name: str) -> RubricMetric:
        """Metric with this name.

        :raises UnknownName: if the rubric does not contain it."""
        return _find_by_name(self.metrics, name, "metric of the rubric")

    def step(self, name: str) -> RubricStep:
        """Step with this name.

        :raises UnknownName: if the rubric does not contain it."""
        return _find_by_name(self.steps, name, "step of the rubric")

    def system_text(self, names: Sequence[str]) -> str:
        """Instruction, then question and levels of the named metrics in the rubric's order."""
        sections = [metric.text for metric in self.metrics if metric.name in names]
        return "\n\n".join([self.instruction.strip(), *sections])

    def step_text(self, name: str) -> str:
        """Instruction, step instruction, and question and labels of the step's metric."""
        step = self.step(name)
        sections = [self.metric(step.metric).text] if step.metric else []
        return "\n\n".join([self.instruction.strip(), step.instruction.strip(), *sections])


def _find_by_name(parts: Sequence[_Named], name: str, kind: str) -> _Named:
    for part in parts:
        if part.name == name:
            return part
    raise UnknownName(kind, name, [part.name for part in parts])


def parse_rubric(text: str, *, file: str = "") -> Rubric:
    """Parse a rubric from YAML.

    :raises InvalidFile: as :func:`read_yaml`."""
    return read_yaml(Rubric, text, file, "rubric")


_package_rubrics: list[Rubric] = []


def shipped_rubrics() -> tuple[Rubric, ...]:
    """Shipped rubrics, sorted by family and language, then those of packages."""
    return (*_read_shipped_rubrics(), *_package_rubrics)


@cache
def _read_shipped_rubrics() -> tuple[Rubric, ...]:
    return tuple(
        parse_rubric(path.read_text("utf-8"), file=path.name) for path in sorted(SHIPPED_DIRECTORY.glob("*.yaml"))
    )


def add_rubrics(rubrics: Iterable[Rubric]) -> None:
    """Register the rubrics of a package."""
    _package_rubrics.extend(rubrics)


def shipped_rubric(family: str, language: str) -> Rubric:
    """Shipped rubric of a family: Korean for ``ko`` and ``ko-kr``, English otherwise.

    :raises UnknownName: for a family without a shipped rubric."""
    rubric_language = "ko" if language.startswith("ko") else "en"
    for rubric in shipped_rubrics():
        if (rubric.family, rubric.language) == (family, rubric_language):
            return rubric
    raise UnknownName("rubric family", family, sorted({r.family for r in shipped_rubrics()}))
