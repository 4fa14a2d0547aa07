"""Types of the values in a report's JSON. ``sections.py`` names the type of each entry."""

from typing import Any, NotRequired, get_type_hints

from typing_extensions import TypedDict

from evaluation.core.json_types import object_type
from evaluation.core.metric_specs import Bilingual
from evaluation.runs.progress import Spending
from review.reports.profile_section import Abstention, PassRate, Spread
from review.reports.provenance import Provenance
from review.statistics.agreement.trust import JudgeTrust

Number = float | None


class Assumption(TypedDict):
    """Accepted assumption about unrated parts."""

    by: str
    at: str
    bias: float


class AnyTime(TypedDict):
    """Interval that holds at every look while ratings come in."""

    low: float
    high: float
    labels: int


class RoundOfFigure(TypedDict):
    """A round of review in a composite."""

    labels: int
    weight: float
    planned: bool
    left_out: NotRequired[str]


# A functional declaration, because ``lambda`` is a keyword.
FigureValue = object_type(
    "FigureValue",
    {
        "value": NotRequired[float],
        "low": NotRequired[Number],
        "high": NotRequired[Number],
        "target": NotRequired[str],
        "n": int,
        "withheld": NotRequired[str],
        "no_interval": NotRequired[str],
        "worst": NotRequired[Number],
        "best": NotRequired[Number],
        "labels": NotRequired[int | None],
        "effective_labels": NotRequired[Number],
        "lambda": NotRequired[Number],
        "method": NotRequired[str | None],
        "warnings": NotRequired[list[str]],
        "non_response": NotRequired[float],
        "response_bounds": NotRequired[tuple[float, float] | None],
        "as_it_came": NotRequired[list[str]],
        "partly_corrected": NotRequired[dict[str, float]],
        "assumed_bias": NotRequired[float],
        "assumption": NotRequired[Assumption],
        "missing": NotRequired[dict[str, Any]],
        "any_time": NotRequired[AnyTime],
        "rounds": NotRequired[list[RoundOfFigure]],
        "looks": NotRequired[int],
        "planned": NotRequired[bool],
        "carried": NotRequired[int],
        "built_on": NotRequired[int],
        "sealed": NotRequired[int],
    },
    "A value with its 95% interval, or ``withheld`` with the reason. The other keys explain corrected figures.",
)


class MissingPartValue(TypedDict):
    """A part of the profile that is not in the score."""

    metric: str
    weight: float
    why: str


class HopsFigures(TypedDict):
    answers: int
    judge_only: FigureValue
    reviewed: FigureValue


class Settlement(TypedDict):
    """Evidence that would decide an open check: ``needed`` labels or questions."""

    by: str
    needed: int


class GateCheckResult(TypedDict):
    """Result of one gate rule, with the checked value and its interval."""

    rule: str
    limit: float
    value: Number
    low: Number
    high: Number
    target: str
    verdict: str
    reason: NotRequired[str]
    labels_alone: NotRequired[float]
    alike_within: NotRequired[float]
    settle: NotRequired[Settlement]


class GateResult(TypedDict):
    """Result of a quality gate. ``exit_code`` is 0 if it passes, else 100."""

    on: str
    target: str
    verdict: str
    allow_undecided: bool
    exit_code: int
    baseline: int | None
    looks: int
    checks: list[GateCheckResult]
    incomplete: NotRequired[str]
    unapproved: NotRequired[list[str]]


class NextReview(TypedDict):
    """The next worthwhile review: ``items`` more answers, and the half-width of the interval after it.

    ``next_round_of`` is the queue whose next planned round it is."""

    items: int
    minutes: float
    half_width: Number
    now: Number
    guessed: bool
    pace_measured: bool
    waiting: bool
    next_round_of: int | None
    sentence: str
    note: str


class RemovedAnswer(TypedDict):
    id: str
    answer_id: int
    sample: int


MetricTrustValue = object_type(
    "MetricTrustValue",
    {name: kind for name, kind in get_type_hints(JudgeTrust).items() if name != "value"}
    | {"judge": Number, "missing": str},
    "Verdict on the judge for one metric.",
)


class VerdictValue(TypedDict):
    """Sentences in the reader's language, and the verdict on each metric."""

    judge: str
    score: str
    next: str
    metrics: dict[str, MetricTrustValue]


Cost = object_type("Cost", get_type_hints(Spending) | {"at_least": bool}, Spending.__doc__ or "")
RunCost = object_type(
    "RunCost", get_type_hints(Spending) | {"at_least": bool, "currency": str, "by_rubric": dict[str, Cost]}
)
ProvenanceValue = object_type(
    "ProvenanceValue",
    {name: kind for name, kind in get_type_hints(Provenance).items() if name != "cost_by_rubric"} | {"cost": RunCost},
    "Versions, hashes, models, draws, cost and dates.",
)


class BandValue(TypedDict):
    value: Number
    band: str | None
    answers: dict[str, int]
    titles: dict[str, Bilingual]


class DiagnosisCell(TypedDict):
    high: list[str]
    answers: int
    title: Bilingual
    text: Bilingual


class DiagnosisValue(TypedDict):
    run: str | None
    unknown: int
    cells: dict[str, DiagnosisCell]


class LabelShare(TypedDict):
    count: int
    share: float
    low: float
    high: float


class ClassTableValue(TypedDict):
    labels: list[str]
    total: dict[str, LabelShare]
    by_category: dict[str, dict[str, int]]


class ProfileFigures(TypedDict):
    """The profile's own part, under the names of its source."""

    profile: str
    source: str
    figures: dict[str, Number]
    bands: NotRequired[dict[str, BandValue]]
    passing: NotRequired[PassRate]
    diagnosis: NotRequired[dict[str, DiagnosisValue]]
    classes: NotRequired[dict[str, ClassTableValue]]
    abstention: NotRequired[Abstention]
    spread: NotRequired[list[Spread]]
    deviations: list[Bilingual]


# The rates of the metrics are further keys, under the names of the profile's source.
_RATES = {"llm_judge": dict[str, Number] | None, "avg_latency_seconds": Number}
CategoryRates = object_type("CategoryRates", _RATES | {"count": int}, is_open=True)
SOURCE_FIGURES = _RATES | {"by_category": dict[str, CategoryRates]}


class Estimates(TypedDict):
    """One score by four estimates."""

    judge_only: FigureValue
    reviewed: FigureValue
    corrected: FigureValue
    corrected_this_run: FigureValue


class ScoreSheet(TypedDict):
    overall: Estimates
    metrics: dict[str, Estimates]


class Correction(ScoreSheet):
    """Estimates of the overall score and each metric."""

    run: int
    by_category: NotRequired[dict[str, ScoreSheet]]
    next_review: NextReview | None
