"""Types of the standing score's JSON."""

from typing import get_type_hints

from typing_extensions import TypedDict

from evaluation.core.json_types import object_type
from review.standing.selectors import Release
from review.statistics.standing import Drift, TuningTest

TuningResult = object_type("TuningResult", get_type_hints(TuningTest) | {"fired": bool}, TuningTest.__doc__ or "")
ReleaseScores = object_type(
    "ReleaseScores", get_type_hints(Release) | {"tuning": TuningResult | None}, Release.__doc__ or ""
)
DriftFigures = object_type("DriftFigures", get_type_hints(Drift) | {"shown": bool}, Drift.__doc__ or "")


class Standing(TypedDict):
    """Releases, oldest first, and the drift of repeated ratings by metric."""

    releases: list[ReleaseScores]
    drift: dict[str, DriftFigures]
    sentence: str
