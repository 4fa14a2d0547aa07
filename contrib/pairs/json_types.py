"""Types of the figures' JSON."""

from typing import get_type_hints

from typing_extensions import TypedDict

from contrib.pairs.figures import PreferenceSummary
from evaluation.core.json_types import object_type
from review.agreement.json_types import ExpertStatistics, PairStatistics

_SUMMARY = get_type_hints(PreferenceSummary)
ExpertPreferences = object_type("ExpertPreferences", _SUMMARY | {"raters": list[str], "agreement": ExpertStatistics})
JudgePreferences = object_type(
    "JudgePreferences", _SUMMARY | {"orders_disagree": float | None, "agreement": PairStatistics}
)


class PairMetric(TypedDict):
    """Preferences of experts and judges on one metric."""

    experts: ExpertPreferences
    judges: dict[str, JudgePreferences]
