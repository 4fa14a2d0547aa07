"""Several draws over one frame, made independently and planned before any rating was read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from review.statistics.sampling.member import Drawn


def union_probability(probabilities: Sequence[float | None]) -> float | None:
    """The probability of being sampled by at least one draw: ``1 - prod(1 - p)``. Hand-picking (``None``) gives no
    probability and takes none away; ``None`` where nothing else was drawn."""
    known = [probability for probability in probabilities if probability is not None]
    if any(not 0.0 <= probability <= 1.0 for probability in known):
        raise ValueError("a probability lies between 0 and 1")
    return 1.0 - math.prod(1.0 - probability for probability in known) if known else None


def united(draws: Sequence[Sequence[Drawn]]) -> list[Drawn]:
    """All draws as one: union probabilities, sampled where a draw with probabilities sampled it. An answer that was
    only hand-picked does not count as sampled, unless no draw has probabilities at all.

    The strata are those of the draw that has most of them (the larger draw, where equally many): it filled each of
    them by itself, which the crossings of several draws' strata would not be; the probabilities carry the rest.

    :raises ValueError: when the draws have different frames, or there is none.
    """
    if len({frozenset(one.key for one in one_draw) for one_draw in draws}) != 1:
        raise ValueError("draws over different frames cannot be united")
    random = [one_draw for one_draw in draws if any(one.probability is not None for one in one_draw)] or list(draws)
    leading = max(random, key=lambda one_draw: (len(_strata(one_draw)), sum(one.sampled for one in one_draw)))
    strata = {one.key: one.stratum for one in leading}
    by_key: dict[int, list[Drawn]] = {key: [] for key in sorted(strata)}
    for one_draw in random:
        for one in one_draw:
            by_key[one.key].append(one)
    return [
        Drawn(
            key=key,
            stratum=strata[key],
            probability=union_probability([one.probability for one in ones]),
            sampled=any(one.sampled for one in ones),
        )
        for key, ones in by_key.items()
    ]


def _strata(one_draw: Sequence[Drawn]) -> set[str]:
    return {one.stratum for one in one_draw}
