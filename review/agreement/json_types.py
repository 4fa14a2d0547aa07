"""Types of the agreement JSON of the command, REST and reports."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from evaluation.core.json_types import object_type
from evaluation.core.metric_specs import Bilingual
from review.evidence.experts import Anchoring
from review.statistics.agreement.catalogue import STATISTIC_NAMES
from review.statistics.agreement.ceiling import AVERAGED_STATISTICS, AlternativeAnnotatorTest
from review.statistics.agreement.pair import CurvePoint
from review.statistics.agreement.trust import JudgeTrust

Number = float | None
Interval = tuple[float, float]
_AVERAGES = dict.fromkeys(AVERAGED_STATISTICS, Number) | {"n": int, "intervals": dict[str, Interval]}
_STATISTICS = dict.fromkeys(STATISTIC_NAMES, Number) | {
    "n": int,
    "excluded": dict[str, int],
    "confusion": list[list[float]] | None,
    "labels": list[Any],
    "intervals": dict[str, Interval],
    "undefined": dict[str, str],
}
PairStatistics = object_type(
    "PairStatistics", _STATISTICS, "Statistics of two sides. ``undefined`` holds the reason of each null."
)
AveragedStatistics = object_type("AveragedStatistics", _AVERAGES, "Mean of each statistic over left-out experts.")


class CeilingRater(TypedDict):
    """One left-out expert, and the judge in his place, against the mean of the others."""

    expert: PairStatistics
    judge: PairStatistics | None


class CeilingSides(TypedDict):
    expert: AveragedStatistics
    judge: AveragedStatistics


class ExpertCeiling(CeilingSides):
    raters: dict[str, CeilingRater]


_EXPERTS = _STATISTICS | {
    "ratings": int,
    "raters": list[str],
    "fleiss_kappa": Number,
    "pairs": dict[str, PairStatistics],
    "ceiling": ExpertCeiling,
    "alternative_annotator": AlternativeAnnotatorTest | None,
}
ExpertStatistics = object_type("ExpertStatistics", _EXPERTS, "Agreement of the experts among themselves.")


def _with_parts(part: Any) -> dict[str, Any]:
    return dict.fromkeys(("by_category", "by_period"), NotRequired[dict[str, part]])


class LengthCorrelation(TypedDict):
    """Rank correlation of judge minus experts with the length of the answer."""

    rho: Number
    low: Number
    high: Number


JudgeAgreement = object_type(
    "JudgeAgreement",
    _STATISTICS
    | _with_parts(PairStatistics)
    | {
        "rubric": str,
        "method": str,
        "primary": bool,
        "baseline": bool,
        "imported": bool,
        "scale": str,
        "sampling": str,
        "left_out": int,
        "built_on": NotRequired[int],
        "sealed": NotRequired[int],
        "trust": JudgeTrust | None,
        "warnings": list[str],
        "bias_by_length": LengthCorrelation | None,
        "constant_guess": dict[str, float | str] | None,
        "ceiling": CeilingSides | None,
        "alternative_annotator": AlternativeAnnotatorTest | None,
        "reliability_curve": list[CurvePoint],
        "places": list[tuple[float, float, int]],
    },
    "A judge or imported scorer against the experts on one metric.",
)
ExpertAgreement = object_type(
    "ExpertAgreement",
    _EXPERTS
    | _with_parts(ExpertStatistics)
    | {
        "title": Bilingual,
        "scale": str,
        "sampling": str,
        "left_out": int,
        "sealed": NotRequired[int],
        "warnings": list[str],
    },
    "The experts among themselves on one metric.",
)


class VariationDesign(TypedDict):
    answers: int
    reviewers: int
    ratings_per_answer: float
    judged: int
    judge_repeats: float


class VariationAdvice(TypedDict):
    spend_on: str | None
    share: dict[str, float]
    untold: list[str]


class MetricVariation(TypedDict):
    """Variance components of one metric, in squared units of its scale."""

    title: Bilingual
    scale: str
    judge: str
    variance: dict[str, float]
    share: dict[str, float]
    missing: dict[str, str]
    design: VariationDesign
    next: VariationAdvice


AnchoringFigures = object_type(
    "AnchoringFigures",
    Anchoring.__annotations__ | {"title": Bilingual, "share": Number},
    "How far ratings moved after the judge was shown.",
)


class Agreement(TypedDict):
    """Judges by author and metric, experts by metric."""

    judges: dict[str, dict[str, JudgeAgreement]]
    experts: dict[str, ExpertAgreement]
    variance: NotRequired[dict[str, MetricVariation]]
    anchoring: NotRequired[dict[str, AnchoringFigures]]
