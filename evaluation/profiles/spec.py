"""Specification of scoring profiles: metrics with weights, normalisation, treatment of missing results, and
interpretation of figures (bands, automatic failures, diagnosis tables).

A profile is a YAML file or a row, versioned and pinned by a run. :func:`load_profile` is strict: it refuses unknown
fields, repeated keys, aliases and weights that do not sum to 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from evaluation.core.metric_specs import Bilingual, RuleSettings
from evaluation.core.profile_settings import Cap, CitationRules, NextStepRules
from evaluation.core.samples import CheckPhrases, FrozenModel, Nugget
from evaluation.core.yaml_models import locate_yaml_error


def read_mapping(text: str) -> dict[str, Any]:
    """Parse a YAML document that is a mapping.

    :raises ValueError: with the line, for invalid YAML, an alias, a repeated key, or a document that is no mapping."""
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
        line, reason = locate_yaml_error(error)
        raise ValueError(f"line {line or 1}: not YAML: {reason}") from error
    return value


def _line(event_or_node: Any) -> int:
    return int(event_or_node.start_mark.line) + 1


def _refuse_repeated_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item)
    if isinstance(node, yaml.MappingNode):
        seen_keys: set[str] = set()
        for key, value in node.value:
            if key.value in seen_keys:
                raise ValueError(f"line {_line(key)}: the key {key.value!r} is there twice")
            seen_keys.add(key.value)
            _refuse_repeated_keys(value)


WEIGHT_TOLERANCE = 1e-9
# The default profile of runs.
DEFAULT_PROFILE = "standard"
# The key of the overall score among thresholds and report names.
OVERALL = "overall"
# The metric that is the overall score of the ragas profile.
RAGAS_SCORE = "ragas_score"
_PERCENT = 100.0
# The metric whose verdicts are the flags of automatic failures.
FLAGS_METRIC = "hallucination_flags"
_SHIPPED = Path(__file__).parent / "shipped"
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class BilingualText(FrozenModel):
    """A text in both languages of the product."""

    en: str = Field(min_length=1)
    ko: str = Field(min_length=1)

    @property
    def bilingual(self) -> Bilingual:
        """The text as the type that metric specifications use."""
        return Bilingual(self.en, self.ko)


class ScoreBand(FrozenModel):
    """A named range of a figure, from ``at_least`` (inclusive) or ``above`` (exclusive) up to the next band."""

    name: _Name
    title: BilingualText
    at_least: _Finite | None = None
    above: _Finite | None = None

    @model_validator(mode="after")
    def _has_one_start(self) -> Self:
        if (self.at_least is None) == (self.above is None):
            raise ValueError(f"the band {self.name} starts either at_least somewhere or above it")
        return self

    @property
    def start(self) -> tuple[float, bool]:
        """The start, and whether it is exclusive."""
        if self.above is not None:
            return self.above, True
        return self.at_least or 0.0, False


class AutomaticFailure(FrozenModel):
    """A flag (a verdict of ``hallucination_flags``) that makes an answer fail, whatever its scores."""

    flag: Literal["unknown_phone", "forbidden_name", "avoidance"]
    title: BilingualText


class TableAxis(FrozenModel):
    """One side of a table: high if every metric is at least ``at_least``."""

    name: _Name
    title: BilingualText
    metrics: tuple[_Name, ...] = Field(min_length=1)
    at_least: _Finite


class TableCell(FrozenModel):
    """A cell of a table: its diagnosis, and the axes that are high. The axes not listed are low."""

    name: _Name
    high: tuple[_Name, ...] = ()
    title: BilingualText
    text: BilingualText


class DiagnosisTable(FrozenModel):
    """Two axes and a diagnosis for each of the four combinations of high and low."""

    name: _Name
    title: BilingualText
    axes: tuple[TableAxis, TableAxis]
    cells: tuple[TableCell, ...]

    @model_validator(mode="after")
    def _has_every_combination(self) -> Self:
        names = {axis.name for axis in self.axes}
        combinations = [frozenset(cell.high) for cell in self.cells]
        expected = {frozenset(), frozenset(names), *(frozenset({name}) for name in names)}
        if len(names) != len(self.axes) or set(combinations) != expected or len(combinations) != len(expected):
            raise ValueError(f"the table {self.name} does not have each combination of its axes once")
        return self


class OverallUnit(StrEnum):
    """The level at which the overall score is computed."""

    RUN_MEANS = "run_means"
    PER_ANSWER = "per_answer"


class Normalisation(StrEnum):
    """Scaling of values to the range 0 to 1.

    ``by_max`` divides by ``top``, so that a scale of 1 to 5 starts at 0.2. ``min_max`` maps both ends of the scale."""

    BY_MAX = "by_max"
    MIN_MAX = "min_max"


class FailureRule(StrEnum):
    """The treatment of failed results in a mean: left out, or counted as 0."""

    EXCLUDE = "exclude"
    ZERO = "zero"


class EmptyAnswerRule(StrEnum):
    """Treatment of a part that cannot apply to an answer, such as one without claims: it counts as 0, or is
    left out."""

    ZERO = "zero"
    LEAVE_OUT = "leave_out"


FIELDS_BY_METRIC = ("thresholds", "primary_judges", "report_names", "report_factors", "metric_bands")


class ProfilePart(FrozenModel):
    """A metric with its weight in the overall score.

    ``top`` is the divisor of ``by_max``, by default the scale's upper end. ``otherwise`` is the metric that takes the
    part's place for answers to which ``metric`` does not apply. A part with ``categories`` applies only to questions of
    these categories."""

    metric: _Name
    otherwise: Annotated[str, Field(pattern=r"^([a-z][a-z0-9_]{0,63})?$")] = ""
    weight: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    top: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    categories: tuple[str, ...] = ()

    def applies_to(self, category: str) -> bool:
        return not self.categories or category in self.categories


class WholeScore(FrozenModel):
    """A metric that alone decides the score of answers to questions of some categories."""

    metric: _Name
    categories: tuple[str, ...] = Field(min_length=1)


class ProfileSpec(FrozenModel):
    """A profile. ``parts`` and ``constant`` make the overall score; a profile without parts has none.

    ``requires`` are metrics without which an answer has no overall score. ``reported`` are metrics computed and shown
    in addition. ``thresholds`` hold a minimum by metric, or for ``overall``; with ``automatic_failures`` they decide
    which answers pass. ``bands`` name ranges of the overall score, ``metric_bands`` those of metrics. ``tables`` give a
    diagnosis for each combination of high and low figures. ``primary_judges`` names the judge whose value counts for a
    metric. Reports show a metric, or ``overall``, under its name in ``report_names`` and multiplied by its factor in
    ``report_factors``. ``deviations`` describe differences from the source. :class:`RuleSettings` documents the
    settings of metrics.

    :raises ValueError: if weights and constant do not sum to 1 (within 1e-9), or names repeat or are unknown."""

    name: _Name
    version: int = Field(default=1, ge=1)
    title: BilingualText
    description: BilingualText | None = None
    source: str = ""
    unit: OverallUnit = OverallUnit.RUN_MEANS
    parts: tuple[ProfilePart, ...] = ()
    constant: _Share = 0.0
    requires: tuple[_Name, ...] = ()
    reported: tuple[_Name, ...] = ()
    whole_score: WholeScore | None = None
    normalise: Normalisation = Normalisation.BY_MAX
    on_failure: FailureRule = FailureRule.EXCLUDE
    on_empty_answer: EmptyAnswerRule = EmptyAnswerRule.ZERO
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
    bands: tuple[ScoreBand, ...] = ()
    metric_bands: dict[str, tuple[ScoreBand, ...]] = Field(default_factory=dict)
    tables: tuple[DiagnosisTable, ...] = ()
    primary_judges: dict[str, str] = Field(default_factory=dict)
    report_names: dict[str, str] = Field(default_factory=dict)
    report_factors: dict[str, _Finite] = Field(default_factory=dict)
    deviations: tuple[BilingualText, ...] = ()

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        total = sum(part.weight for part in self.parts) + self.constant
        if self.parts and abs(total - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"weights and constant sum to {total:.12g}, not 1")
        if not self.parts and self.constant:
            raise ValueError("a constant without parts is no score")
        if self.unit is not OverallUnit.PER_ANSWER and (self.whole_score or self.requires or self._alternatives):
            raise ValueError("whole_score, requires and otherwise belong to per-answer profiles")
        if self._alternatives and self.normalise is not Normalisation.MIN_MAX:
            raise ValueError("a part with otherwise needs min_max: the two metrics may have different scales")
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        part_and_reported_names = [part.metric for part in self.parts] + list(self.reported)
        repeated = sorted({name for name in part_and_reported_names if part_and_reported_names.count(name) > 1})
        if repeated:
            raise ValueError(f"named twice: {', '.join(repeated)}")
        known_names = {*self.metrics, OVERALL}
        references: list[tuple[str, Iterable[str]]] = [(field, getattr(self, field)) for field in FIELDS_BY_METRIC]
        references += [("requires", self.requires), ("caps", [cap.metric for cap in self.caps])]
        references += [("tables", [name for table in self.tables for axis in table.axes for name in axis.metrics])]
        if self.automatic_failures:
            references.append(("automatic_failures", [FLAGS_METRIC]))
        for field, names in references:
            if unknown := sorted(set(names) - known_names):
                raise ValueError(f"{field} names what the profile does not have: {', '.join(unknown)}")
        return self

    @model_validator(mode="after")
    def _check_report_names(self) -> Self:
        report_names = [self.report_name(name) for name in self.metrics]
        overall = self.report_name(OVERALL)
        if repeated := sorted({name for name in report_names if report_names.count(name) > 1}):
            raise ValueError(f"report_names gives one name to several metrics: {', '.join(repeated)}")
        if overall not in report_names:
            return self
        if overall != RAGAS_SCORE or overall not in self.reported:
            raise ValueError(f"report_names gives the overall score the name of a metric: {overall}")
        if self.unit is not OverallUnit.PER_ANSWER or self.report_factors.get(OVERALL) != _PERCENT:
            raise ValueError(
                f"an overall score named {overall} needs unit: per_answer and report_factors: overall: 100"
            )
        return self

    @model_validator(mode="after")
    def _check_bands(self) -> Self:
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
        """The names of all metrics that a run under this profile computes, parts first, each once."""
        names = [*(part.metric for part in self.parts), *self._alternatives, *self.reported]
        if self.whole_score:
            names.append(self.whole_score.metric)
        return tuple(dict.fromkeys(names))

    def report_name(self, metric: str) -> str:
        """The name of the metric, or ``overall``, in reports."""
        return self.report_names.get(metric, metric)

    def report_value(self, metric: str, value: float) -> float:
        """The value of the metric, or of the overall score, as reports show it."""
        return value * self.report_factors.get(metric, 1.0)

    def content(self) -> dict[str, Any]:
        """The content that the profile's hash covers, as JSON values: without version and defaults, so that a new field
        does not change the hash of older profiles."""
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"version"})


def load_profile(text: str) -> ProfileSpec:
    """Parse a profile from YAML.

    :raises ValueError: for invalid YAML, aliases, repeated keys, or an invalid profile."""
    return ProfileSpec.model_validate(read_mapping(text))


def rule_settings(profile: ProfileSpec, *, k: int | None = None) -> RuleSettings:
    """The settings of a run's rule metrics; ``k`` overrides the profile's."""
    profile_values = {
        setting_field.name: getattr(profile, setting_field.name)
        for setting_field in fields(RuleSettings)
        if setting_field.name != "embeds"
    }
    return RuleSettings(**profile_values | ({} if k is None else {"k": k}))


@lru_cache(maxsize=1)
def shipped_profiles() -> tuple[ProfileSpec, ...]:
    """The shipped profiles, sorted by file name."""
    return tuple(load_profile(path.read_text(encoding="utf-8")) for path in sorted(_SHIPPED.glob("*.yaml")))


def metrics_by_report_name(content: Mapping[str, Any]) -> dict[str, str]:
    """The metrics of a profile's stored content by their names in reports, if these differ."""
    report_names = content.get("report_names", {}).items()
    return {report_name: metric for metric, report_name in report_names if metric not in {report_name, OVERALL}}
