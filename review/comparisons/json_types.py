"""Types of a comparison's JSON."""

from typing import NotRequired, get_type_hints

from typing_extensions import TypedDict

from evaluation.core.json_types import object_type
from review.calibration.drift import JudgeShift
from review.comparisons.difference import QuestionChange
from review.releases.selectors import MarginPlan
from review.reports.as_json import ReportJson
from review.reports.json_types import ClassTableValue, FigureValue, GateResult, Number, Settlement
from review.reports.profile_section import Spread
from review.statistics.paired_tests.paired import McNemar, PairedDifference
from review.statistics.paired_tests.ranking import RankSwap

_REPORT = ReportJson.__annotations__
ComparedRun = object_type(
    "ComparedRun",
    {key: _REPORT[key] for key in ("run", "overall", "metrics", "by_category", "latency")}
    | {"classes": NotRequired[dict[str, ClassTableValue]], "spread": NotRequired[list[Spread]]},
    "Sections of the report that a comparison shows.",
)
PairedFigures = object_type(
    "PairedFigures",
    {name: kind for name, kind in get_type_hints(PairedDifference).items() if name not in {"deviation", "limit"}},
    PairedDifference.__doc__ or "",
)
QuestionChangeValue = object_type("QuestionChangeValue", get_type_hints(QuestionChange) | {"change": float})
RunSwap = object_type("RunSwap", get_type_hints(RankSwap) | {"ahead": int, "behind": int})


class VerdictOfDifference(TypedDict):
    verdict: str
    reason: NotRequired[str]
    alike_within: NotRequired[float]
    target: NotRequired[str]
    settle: NotRequired[Settlement]


class DifferenceVerdicts(TypedDict):
    judge_only: VerdictOfDifference
    corrected: VerdictOfDifference


class MetricDifferenceValue(TypedDict):
    """Difference of one metric. ``p_family`` is adjusted over all tests of the comparison."""

    scale: str
    better: str
    difference: PairedFigures | None
    tested: bool
    p_family: Number
    mcnemar: McNemar | None
    corrected: FigureValue
    differs: list[str]
    judge_moved: NotRequired[JudgeShift]
    system_moved: NotRequired[JudgeShift | None]


class RatedPairs(TypedDict):
    """Changed questions by ratings: in both runs, otherwise, not at all."""

    both: int
    one: int
    none: int


class ReleaseDifferenceValue(TypedDict):
    """Difference for exactly these questions, by ratings of those whose answers changed."""

    questions: int
    changed: int
    rated: RatedPairs
    waiting: int
    queue: int | None
    rounds_left: int | None
    difference: FigureValue
    plans: list[MarginPlan]
    guessed: bool


class RunDifferenceValue(TypedDict):
    """A run minus the baseline, on common parts and questions."""

    run: int
    baseline: int
    differs: dict[str, list[str]]
    margin: Number
    verdict: DifferenceVerdicts
    overall: PairedFigures | None
    p_family: Number
    weight: float
    parts: list[str]
    corrected: FigureValue
    corrected_this_run: FigureValue
    release: ReleaseDifferenceValue | None
    mcnemar: McNemar | None
    metrics: dict[str, MetricDifferenceValue]
    worse: list[QuestionChangeValue]
    better: list[QuestionChangeValue]


class TestFamily(TypedDict):
    """The tests: ``size`` overall scores, each at ``level_of_each``."""

    size: int
    error: float
    level_of_each: float


class RankedRunValue(TypedDict):
    """A run with its mean and its first and last possible rank."""

    run: int
    mean: float
    places: tuple[int, int]


class WeightSensitivityValue(TypedDict):
    holds: float
    best: dict[str, float]
    turns: list[RunSwap]


class Ranking(TypedDict):
    profile: str
    parts: dict[str, float]
    questions: int
    order: list[RankedRunValue]
    weights: WeightSensitivityValue | None


class Comparison(TypedDict):
    """Runs side by side, their differences from the first one, and their ranking. ``gates`` are keyed by run."""

    score: str
    runs: list[ComparedRun]
    differs: dict[str, list[str]]
    family: TestFamily
    differences: list[RunDifferenceValue]
    ranking: Ranking | None
    gates: dict[str, GateResult]
