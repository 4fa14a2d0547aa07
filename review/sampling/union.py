"""Several draws over one frame, made independently and planned before any rating was read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from review.sampling.member import Drawn


def union_probability(probabilities: Sequence[float | None]) -> float | None:
    """The probability of being sampled by at least one draw: ``1 - prod(1 - p)``. Hand-picking (``None``) gives no
    probability and takes none away; ``None`` where nothing else was drawn."""
    known = [probability for probability in probabilities if probability is not None]
    if any(not 0.0 <= probability <= 1.0 for probability in known):
        raise ValueError("a probability lies between 0 and 1")
    return 1.0 - math.prod(1.0 - probability for probability in known) if known else None


def united(draws: Sequence[Sequence[Drawn]]) -> list[Drawn]:
    """All draws as one: union probabilities, strata crossed (joined by `` & `` where they differ), sampled where a
    draw with probabilities sampled it. An answer that was only hand-picked does not count as sampled, unless no draw
    has probabilities at all.

    :raises ValueError: when the draws have different frames.
    """
    if len({frozenset(one.key for one in one_draw) for one_draw in draws}) > 1:
        raise ValueError("draws over different frames cannot be united")
    by_key: dict[int, list[Drawn]] = {}
    for one_draw in draws:
        for one in one_draw:
            by_key.setdefault(one.key, []).append(one)
    return [_joined(ones) for _, ones in sorted(by_key.items())]


def _joined(ones: list[Drawn]) -> Drawn:
    random = [one for one in ones if one.probability is not None] or ones
    return Drawn(
        key=ones[0].key,
        stratum=" & ".join(dict.fromkeys(one.stratum for one in random)),
        probability=union_probability([one.probability for one in ones]),
        sampled=any(one.sampled for one in random),
    )
