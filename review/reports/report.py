"""The figures of a run: one frozen value that the run page, REST and the exports all show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluation.core.registry import Bilingual, Scale
from evaluation.profiles.arithmetic import Label, MissingPart
from review.evidence.answers import RunAnswer
from review.evidence.effective import Effective
from review.reports.by_profile.section import ProfileSection
from review.reports.doubting import Doubt
from review.reports.figure import Figure
from review.reports.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many answers of the run have which status of a metric; ``pending`` ones have no result yet."""

    scored: int
    failed: int
    not_applicable: int
    pending: int


@dataclass(frozen=True, slots=True)
class ThreeScores:
    """The overall score three ways; ``sections.OVERALL`` says what each field means. A ``rules_only`` or ``partial``
    figure is shown with its weight ("rules only, weight 0.40") and stands in ``part_only``, the three being withheld
    with that label. ``missing`` names the parts left out. ``mean_shift`` is ``None`` without ratings of both kinds."""

    label: Label
    weight: float
    missing: tuple[MissingPart, ...]
    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    corrected_over_questions: Figure
    part_only: Figure | None
    answers: int
    reviewed_answers: int
    overrides: int
    unresolved: int
    examples: bool
    mean_shift: float | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from request to complete answer: mean, median and 95th percentile of ``n`` answers."""

    n: int
    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric over the run; ``sections.METRICS`` says what each field means. Means are on the metric's own ``scale``;
    class metrics have ``shares`` (label -> share of effective labels) instead. ``report_name`` is that of the profile's
    source, under which figures stand times ``report_factor``."""

    metric_id: int
    name: str
    version: int
    title: Bilingual
    report_name: str
    report_factor: float
    kind: str
    scale: Scale
    weight: float
    coverage: Coverage
    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    rated: int
    overridden: int
    unresolved: int
    shares: Mapping[str, float]
    latency: Latency | None


@dataclass(frozen=True, slots=True)
class CategoryLine:
    """The run's answers to the questions of one category. ``metrics`` are judge-only and reviewed means by metric
    name, ``corrected`` likewise; an overall figure (``corrected_overall`` is the corrected one) stands only where all
    parts of the profile exist in the category.
    """

    name: str
    answers: int
    judge_only: Figure
    reviewed: Figure
    corrected_overall: Figure
    metrics: Mapping[str, tuple[Figure, Figure]]
    corrected: Mapping[str, Figure]
    coverage: Mapping[str, Coverage]
    latency: Latency | None


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One answer with its effective values by metric name. ``score`` is its share of the parts that apply to it (0 to
    1, effective values, profile's weights), ``None`` where there is none: it ranks answers and is no overall score of
    a run-mean profile."""

    answer: RunAnswer
    values: Mapping[str, Effective]
    score: float | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where the primary judge and the experts are furthest apart. ``distance`` is a share of the scale (classes: 1)."""

    answer: RunAnswer
    metric: str
    title: Bilingual
    judge: float | str
    expert: float | str
    raters: int
    distance: float


@dataclass(frozen=True, slots=True)
class RunHeader:
    """Which run this is. ``complete``: it ended with a headline; else ``state`` and ``reason`` say what it lacks.
    ``open_units`` is the work still waiting, ``units`` all of it."""

    run_id: int
    name: str
    project_id: int
    state: str
    reason: str
    complete: bool
    system: str
    question_set: str
    question_set_id: int
    profile: str
    judges: tuple[str, ...]
    baseline_judged: bool
    answers: int
    units: int
    open_units: int
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run.

    ``evaluation`` is the section of source 000 without its details: rates and judge means, ``overall_score``
    (judge-only; ``None`` unless it may be called so) and ``by_category``. ``by_profile`` is the profile's own section.
    ``agreement`` has the form of the ``agreement`` command, with why values vary and without intervals. ``gate`` is
    ``None``: no gate was asked for. ``next_review`` is the next review worth while, ``None`` where nothing would be
    gained or where nobody planned. ``doubts`` are what makes the judge less to be trusted. ``worst`` are the answers
    with the lowest scores, ``disagreements`` the largest distances of judge and experts first. ``removed`` are answers
    that stand in no figure and not among ``answers``, because a lead upheld a flag of their question or reference.
    """

    header: RunHeader
    overall: ThreeScores
    metrics: tuple[MetricLine, ...]
    categories: tuple[CategoryLine, ...]
    latency: Latency | None
    agreement: Mapping[str, Any]
    gate: Mapping[str, Any] | None
    next_review: Mapping[str, Any] | None
    provenance: Provenance
    doubts: tuple[Doubt, ...]
    evaluation: Mapping[str, Any]
    by_profile: ProfileSection
    worst: tuple[AnswerLine, ...]
    disagreements: tuple[Disagreement, ...]
    answers: tuple[AnswerLine, ...]
    removed: tuple[RunAnswer, ...]
