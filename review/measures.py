"""Agreement of a run: every judge against the experts, and the experts among themselves (statistics.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.registry import Bilingual
from review.agreement.experts import ExpertAgreement
from review.agreement.pair import PairAgreement


@dataclass(frozen=True, slots=True)
class JudgeMeasure:
    """One scorer against the experts on one metric. ``author`` is ``name@version``, an imported judge's label, or
    ``rules``. ``primary`` marks the judge whose values are the run's, ``baseline`` the offline baseline.
    ``by_category`` holds the same comparison within each category, where asked for."""

    author: str
    primary: bool
    baseline: bool
    imported: bool
    metric: str
    title: Bilingual
    agreement: PairAgreement
    by_category: Mapping[str, PairAgreement]


@dataclass(frozen=True, slots=True)
class ExpertsMeasure:
    """The experts among themselves on one metric. ``sampling``: ``weighted`` (a draw with unequal probabilities),
    ``equal`` or ``unknown`` (hand-picked or imported without a probability); ``left_out`` counts rated answers of
    unknown sampling that are not mixed with the others."""

    metric: str
    title: Bilingual
    agreement: ExpertAgreement
    sampling: str
    left_out: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """All agreement figures of a run."""

    judges: tuple[JudgeMeasure, ...]
    experts: tuple[ExpertsMeasure, ...]

    def to_dict(self) -> dict[str, Any]:
        """``{"judges": {author: {metric: {...}}}, "experts": {metric: {...}}}`` as the contract has it."""
        judges: dict[str, dict[str, Any]] = {}
        for one in self.judges:
            found = one.agreement.to_dict()
            if one.by_category:
                found["by_category"] = {name: pair.to_dict() for name, pair in one.by_category.items()}
            judges.setdefault(one.author, {})[one.metric] = found
        experts = {
            one.metric: {**one.agreement.to_dict(), "sampling": one.sampling, "left_out": one.left_out}
            for one in self.experts
        }
        return {"judges": judges, "experts": experts}
