"""What a scoring profile is: metrics with weights, how they are put on one scale, what happens to gaps, and how its
figures are read (bands, automatic failures, tables of high and low with a diagnosis each).

A profile is data, a YAML file or a row, versioned and pinned by a run. :func:`load_profile` reads one strictly: an
unknown field, a repeated key, an alias or weights that do not sum to 1 refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from evaluation.core.described import where_and_what
from evaluation.core.metric_specs import Bilingual, RuleSettings
from evaluation.core.profile_settings import Cap, CitationRules, NextStepRules
from evaluation.core.samples import CheckPhrases, FrozenModel, Nugget


def read_mapping(text: str) -> dict[str, Any]:
    """The mapping a YAML document holds.

    :raises ValueError: with the line, when it is no YAML, uses an alias, repeats a key, or is no mapping.
    """
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"line {_line(event)}: aliases are not read")
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("not a YAML mapping")
        _refuse_repeated_keys(node)
        value: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        line, told = where_and_what(error)
        raise ValueError(f"line {line or 1}: not YAML: {told}") from error
    return value


def _line(marked: Any) -> int:
    return int(marked.start_mark.line) + 1


def _refuse_repeated_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise ValueError(f"line {_line(key)}: the key {key.value!r} is there twice")
            seen.add(key.value)
            _refuse_repeated_keys(value)


WEIGHT_TOLERANCE = 1e-9
DEFAULT_PROFILE = "standard"  # of runs for which nobody names one
OVERALL = "overall"  # the key of the overall score among thresholds and report names
RAGAS_SCORE = "ragas_score"  # the metric that is the overall score of source 001's profile
_PERCENT = 100.0
FLAGS = "hallucination_flags"  # the metric whose flags may fail an answer
_SHIPPED = Path(__file__).parent / "shipped"
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class Text(FrozenModel):
    """A text in both languages of the product."""

    en: str = Field(min_length=1)
    ko: str = Field(min_length=1)

    @property
    def bilingual(self) -> Bilingual:
        """The same as the registry's type."""
        return Bilingual(self.en, self.ko)


class Band(FrozenModel):
    """A named range of a figure, up to the next band, which it does not include. It starts at ``at_least``, or right
    above ``above``."""

    name: _Name
    title: Text
    at_least: _Finite | None = None
    above: _Finite | None = None

    @model_validator(mode="after")
    def _starts_once(self) -> Self:
        if (self.at_least is None) == (self.above is None):
            raise ValueError(f"the band {self.name} starts either at_least somewhere or above it")
        return self

    @property
    def start(self) -> tuple[float, bool]:
        """Where it starts, and whether only above that."""
        if self.above is not None:
            return self.above, True
        return self.at_least or 0.0, False


class AutomaticFailure(FrozenModel):
    """A flag (a verdict of ``hallucination_flags``) with which an answer does not pass, whatever its scores."""

    flag: Literal["unknown_phone", "forbidden_name", "avoidance"]
    title: Text


class Axis(FrozenModel):
    """One side of a table: high where every one of the metrics is at least ``at_least``."""

    name: _Name
    title: Text
    metrics: tuple[_Name, ...] = Field(min_length=1)
    at_least: _Finite


class Cell(FrozenModel):
    """A field of a table: the axes that are high there (the other is low), and what that means."""

    name: _Name
    high: tuple[_Name, ...] = ()
    title: Text
    text: Text


class Table(FrozenModel):
    """Two axes and a diagnosis for each of the four combinations of high and low."""

    name: _Name
    title: Text
    axes: tuple[Axis, Axis]
    cells: tuple[Cell, ...]

    @model_validator(mode="after")
    def _has_every_combination(self) -> Self:
        names = {axis.name for axis in self.axes}
        found = [frozenset(cell.high) for cell in self.cells]
        wanted = {frozenset(), frozenset(names), *(frozenset({name}) for name in names)}
        if len(names) != len(self.axes) or set(found) != wanted or len(found) != len(wanted):
            raise ValueError(f"the table {self.name} does not have each combination of its axes once")
        return self


class Unit(StrEnum):
    """What the overall score is computed on."""

    RUN_MEANS = "run_means"
    PER_ANSWER = "per_answer"


class Normalise(StrEnum):
    """How a value comes to 0-1: ``by_max`` is value / top (1-5 then starts at 0.2), ``min_max`` uses both ends."""

    BY_MAX = "by_max"
    MIN_MAX = "min_max"


class OnFailure(StrEnum):
    """What a failed result does to a mean: it is left out, or it counts as 0."""

    EXCLUDE = "exclude"
    ZERO = "zero"


class EmptyAnswer(StrEnum):
    """What a part does that is not applicable because of the answer (no claims): it adds 0, or is left out."""

    ZERO = "zero"
    LEAVE_OUT = "leave_out"


NAMED_FIELDS = ("thresholds", "primary_judges", "report_names", "report_factors", "metric_bands")


class Part(FrozenModel):
    """A metric with its weight in the overall score. ``top`` is what ``by_max`` divides by, the scale's upper end
    where it is not given. ``otherwise`` is the metric that takes its place for answers it does not apply to. A part
    with ``categories`` applies to questions of these categories only."""

    metric: _Name
    otherwise: Annotated[str, Field(pattern=r"^([a-z][a-z0-9_]{0,63})?$")] = ""
    weight: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    top: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    categories: tuple[str, ...] = ()

    def applies_to(self, category: str) -> bool:
        """Whether questions of the category have this part."""
        return not self.categories or category in self.categories


class WholeScore(FrozenModel):
    """A metric that alone decides the score of answers to questions of some categories."""

    metric: _Name
    categories: tuple[str, ...] = Field(min_length=1)


class ProfileSpec(FrozenModel):
    """A profile. ``parts`` make the overall score with ``constant``; a profile without parts has none.

    ``requires`` are metrics without which an answer has no overall score. ``reported`` are metrics computed and shown
    beside it. ``thresholds`` are by metric, or ``overall``; with ``automatic_failures`` they say which answers pass.
    ``bands`` are of the overall score, ``metric_bands`` of metrics, ``tables`` what high and low figures mean together.
    ``primary_judges`` names the judge whose value is *the* value of a metric. ``report_names`` are the names under
    which reports show a metric, or ``overall``, ``report_factors`` what they multiply it by. ``deviations`` say where
    the figures differ from the source's. What is set for the metrics is as :class:`RuleSettings` says.

    :raises ValueError: when weights and constant do not sum to 1 (within 1e-9) or names repeat or are unknown.
    """

    name: _Name
    version: int = Field(default=1, ge=1)
    title: Text
    description: Text | None = None
    source: str = ""
    unit: Unit = Unit.RUN_MEANS
    parts: tuple[Part, ...] = ()
    constant: _Share = 0.0
    requires: tuple[_Name, ...] = ()
    reported: tuple[_Name, ...] = ()
    whole_score: WholeScore | None = None
    normalise: Normalise = Normalise.BY_MAX
    on_failure: OnFailure = OnFailure.EXCLUDE
    on_empty_answer: EmptyAnswer = EmptyAnswer.ZERO
    matching: Literal["tiers", "substring"] = "tiers"
    k: int = Field(default=5, ge=1, le=50)
    checks: dict[str, CheckPhrases] = Field(default_factory=dict)
    phrases: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    citation: CitationRules = CitationRules()
    nuggets: tuple[Nugget, ...] = ()
    next_steps: NextStepRules | None = None
    passing: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    caps: tuple[Cap, ...] = ()
    thresholds: dict[str, _Finite] = Field(default_factory=dict)
    automatic_failures: tuple[AutomaticFailure, ...] = ()
    bands: tuple[Band, ...] = ()
    metric_bands: dict[str, tuple[Band, ...]] = Field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    primary_judges: dict[str, str] = Field(default_factory=dict)
    report_names: dict[str, str] = Field(default_factory=dict)
    report_factors: dict[str, _Finite] = Field(default_factory=dict)
    deviations: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = sum(part.weight for part in self.parts) + self.constant
        if self.parts and abs(total - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"weights and constant sum to {total:.12g}, not 1")
        if not self.parts and self.constant:
            raise ValueError("a constant without parts is no score")
        if self.unit is not Unit.PER_ANSWER and (self.whole_score or self.requires or self._alternatives):
            raise ValueError("whole_score, requires and otherwise belong to per-answer profiles")
        if self._alternatives and self.normalise is not Normalise.MIN_MAX:
            raise ValueError("a part with otherwise needs min_max: the two metrics may have different scales")
        return self

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        named = [part.metric for part in self.parts] + list(self.reported)
        repeated = sorted({name for name in named if named.count(name) > 1})
        if repeated:
            raise ValueError(f"named twice: {', '.join(repeated)}")
        known = {*self.metrics, OVERALL}
        uses: list[tuple[str, Iterable[str]]] = [(field, getattr(self, field)) for field in NAMED_FIELDS]
        uses += [("requires", self.requires), ("caps", [cap.metric for cap in self.caps])]
        uses += [("tables", [name for table in self.tables for axis in table.axes for name in axis.metrics])]
        if self.automatic_failures:
            uses.append(("automatic_failures", [FLAGS]))
        for field, names in uses:
            if unknown := sorted(set(names) - known):
                raise ValueError(f"{field} names what the profile does not have: {', '.join(unknown)}")
        return self

    @model_validator(mode="after")
    def _each_name_shows_one_figure(self) -> Self:
        shown = [self.report_name(name) for name in self.metrics]
        overall = self.report_name(OVERALL)
        if repeated := sorted({name for name in shown if shown.count(name) > 1}):
            raise ValueError(f"report_names gives one name to several metrics: {', '.join(repeated)}")
        if overall not in shown:
            return self
        if overall != RAGAS_SCORE or overall not in self.reported:
            raise ValueError(f"report_names gives the overall score the name of a metric: {overall}")
        if self.unit is not Unit.PER_ANSWER or self.report_factors.get(OVERALL) != _PERCENT:
            raise ValueError(
                f"an overall score named {overall} needs unit: per_answer and report_factors: overall: 100"
            )
        return self

    @model_validator(mode="after")
    def _bands_differ(self) -> Self:
        for bands in (self.bands, *self.metric_bands.values()):
            starts = [band.start for band in bands]
            if len(set(starts)) != len(starts):
                raise ValueError("two bands start at the same value")
        return self

    @property
    def _alternatives(self) -> tuple[str, ...]:
        return tuple(part.otherwise for part in self.parts if part.otherwise)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics a run under this profile computes, parts first, each once."""
        names = [*(part.metric for part in self.parts), *self._alternatives, *self.reported]
        if self.whole_score:
            names.append(self.whole_score.metric)
        return tuple(dict.fromkeys(names))

    def report_name(self, metric: str) -> str:
        """The name under which reports show the metric, or ``overall``."""
        return self.report_names.get(metric, metric)

    def report_value(self, metric: str, value: float) -> float:
        """The metric's value, or the overall score, as reports under the source's names show it."""
        return value * self.report_factors.get(metric, 1.0)

    def content(self) -> dict[str, Any]:
        """What makes the profile what it is, as JSON values: without the version number and without defaults, so
        that a field added later does not change the hash of older profiles."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"version"})


def load_profile(text: str) -> ProfileSpec:
    """Read a profile from YAML.

    :raises ValueError: when it is no YAML mapping, uses aliases, repeats a key, or is no valid profile.
    """
    return ProfileSpec.model_validate(read_mapping(text))


def rule_settings(profile: ProfileSpec, *, k: int | None = None) -> RuleSettings:
    """What the rule metrics of a run need of the profile; ``k`` is the run's own, else the profile's."""
    said = {one.name: getattr(profile, one.name) for one in fields(RuleSettings) if one.name != "embeds"}
    return RuleSettings(**said | ({} if k is None else {"k": k}))


@lru_cache(maxsize=1)
def shipped_profiles() -> tuple[ProfileSpec, ...]:
    """The profiles that come with the product, by name."""
    return tuple(load_profile(path.read_text(encoding="utf-8")) for path in sorted(_SHIPPED.glob("*.yaml")))


def metrics_by_report_name(content: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of a profile's stored content by the names under which its reports show them, where that is another
    name than their own."""
    named = content.get("report_names", {}).items()
    return {shown: metric for metric, shown in named if metric not in {shown, OVERALL}}
