"""The ceiling: how well an expert agrees with the other experts, and the judge with those same others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.scales import Scale
from review.agreement.catalogue import NAMES
from review.agreement.consensus import consensus
from review.agreement.pair import PairAgreement, compare
from review.agreement.rating import Item, Rating, by_item, raters_of

AVERAGED = tuple(name for name in NAMES if name != "bias")  # biases of experts among themselves cancel out


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Each expert, and the judge where there is one, against the mean of the other experts, on the same items."""

    experts: Mapping[str, PairAgreement]
    judge: Mapping[str, PairAgreement]

    def to_dict(self) -> dict[str, Any]:
        """``expert`` and ``judge``: each statistic's mean over the left-out experts, weighted by their items, null
        where it is undefined for all; ``raters``: each left-out expert's own comparison."""
        return {
            "expert": averaged(list(self.experts.values())),
            "judge": averaged(list(self.judge.values())),
            "raters": {
                rater: {
                    "expert": self.experts[rater].to_dict(),
                    "judge": self.judge[rater].to_dict() if rater in self.judge else None,
                }
                for rater in self.experts
            },
        }


def averaged(agreements: Sequence[PairAgreement]) -> dict[str, float | int | None]:
    """``n`` (the sum of the comparisons' items) and the item-weighted mean of every statistic that has no direction,
    over the comparisons where it is defined."""
    means: dict[str, float | int | None] = {"n": sum(agreement.n for agreement in agreements)}
    for name in AVERAGED:
        known = [(a.n, value) for a in agreements if (value := a.statistics[name].value) is not None]
        size = sum(n for n, _ in known)
        means[name] = sum(n * value for n, value in known) / size if size else None
    return means


def ceiling(
    ratings: Sequence[Rating],
    scale: Scale,
    judge: Mapping[Item, float | str] | None = None,
    bins: Sequence[float] = (),
) -> Ceiling:
    """Leave out one expert at a time and compare with the mean (classes: majority) of the others.

    With a ``judge`` only the items it scored count, for the experts too: like with like. Items with a single rating
    are left out.
    """
    items = by_item(ratings)
    experts: dict[str, PairAgreement] = {}
    judged: dict[str, PairAgreement] = {}
    for rater in raters_of(items):
        shared = {
            item: values
            for item, values in items.items()
            if rater in values and len(values) > 1 and (judge is None or item in judge)
        }
        if not shared:
            continue
        others = [consensus([v for r, v in values.items() if r != rater], scale) for values in shared.values()]
        experts[rater] = compare([values[rater] for values in shared.values()], others, scale, bins=bins)
        if judge is not None:
            judged[rater] = compare([judge[item] for item in shared], others, scale, bins=bins)
    return Ceiling(experts, judged)
