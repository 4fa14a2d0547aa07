"""A draw: from a frame of answers to the sample, with the stratum and probability of every member of the frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluation.core.errors import Refused
from review.sampling.allocate import allocate
from review.sampling.member import Drawn, DrawParams, Member, Strategy
from review.sampling.stratify import FAILED, stratify
from review.sampling.uncertainty import uncertainty_probabilities

CERTAIN, ALL, FAILS, REST = "certain", "all", "fails", "rest"
Random = np.random.Generator


def draw(
    members: Sequence[Member],
    strategy: Strategy | str,
    size: int,
    seed: int,
    params: DrawParams | None = None,
) -> list[Drawn]:
    """Draw a sample; the result lists the whole frame, by key. The same seed and frame give the same sample, whatever
    the order of ``members``. A size beyond the frame takes all of it. ``uncertainty`` reaches its size on average,
    ``fails_plus_share`` with a share ignores it, ``all`` and ``hand_picked`` have their own.

    :raises Refused: ``empty_frame``, ``draw_too_small``, ``no_spread``, ``no_fail_threshold``, ``fails_exceed_size``
        or ``unknown_keys``.
    :raises ValueError: for doubled keys or a size below 1.
    """
    strategy = Strategy(strategy)
    params = params or DrawParams()
    frame = sorted(members, key=lambda member: member.key)
    keys = [member.key for member in frame]
    if len(set(keys)) != len(keys):
        raise ValueError("a frame holds every answer once")
    if not frame:
        raise Refused("empty_frame")
    if not (params.certain | params.keys) <= set(keys):
        raise Refused("unknown_keys", keys=sorted((params.certain | params.keys) - set(keys)))
    earlier = params.certain if strategy != Strategy.HAND_PICKED else frozenset()  # what is picked is the whole draw
    certain = [Drawn(key, CERTAIN, 1.0, sampled=True) for key in keys if key in earlier]
    rest = [member for member in frame if member.key not in earlier]
    drawn = _STRATEGIES[strategy](rest, size, np.random.default_rng(seed), params) if rest else []
    return sorted([*certain, *drawn], key=lambda one: one.key)


def _all(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    return [Drawn(member.key, ALL, 1.0, sampled=True) for member in frame]


def _uniform(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    _check_size(size)
    return _by_strata({member.key: ALL for member in frame}, {ALL: min(size, len(frame))}, random)


def _stratified(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    _check_size(size)
    strata = stratify(frame, params.merge_below, most=max(1, size // max(1, params.per_stratum)))
    counts = allocate(_sizes(strata), size, params.per_stratum, params.pilot_sd or None)
    return _by_strata(strata, counts, random)


def _fails_plus_share(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    if params.fail_below is None:
        raise Refused("no_fail_threshold")
    strata = {member.key: _fail_stratum(member, params.fail_below) for member in frame}
    sizes = _sizes(strata)
    fails = sizes.pop(FAILS, 0)
    if params.share is not None:
        if not 0.0 < params.share <= 1.0:
            raise ValueError("the share lies above 0 and at most at 1")
        counts = {
            stratum: min(count, max(params.per_stratum, round(params.share * count)))
            for stratum, count in sizes.items()
        }
    else:
        _check_size(size)
        if size < fails:
            raise Refused("fails_exceed_size", fails=fails, size=size)
        counts = allocate(sizes, size - fails, params.per_stratum)
    return _by_strata(strata, counts | ({FAILS: fails} if fails else {}), random)


def _fail_stratum(member: Member, fail_below: float) -> str:
    """Answers without a score are with the rest; those the judge failed on are a stratum of their own."""
    if member.failed:
        return FAILED
    return FAILS if member.judge_score is not None and member.judge_score < fail_below else REST


def _uncertainty(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    _check_size(size)
    keys = [member.key for member in frame]
    probabilities = uncertainty_probabilities(keys, params.spread, min(size, len(keys)))
    taken = random.random(len(keys)) < probabilities
    return [
        Drawn(key, ALL, float(probability), bool(sampled))
        for key, probability, sampled in zip(keys, probabilities, taken, strict=True)
    ]


def _hand_picked(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    return [Drawn(member.key, ALL, None, member.key in params.keys) for member in frame]


def _by_strata(strata: Mapping[int, str], counts: Mapping[str, int], random: Random) -> list[Drawn]:
    """Simple random sampling without replacement within each stratum: probability n_h / N_h."""
    drawn: list[Drawn] = []
    for stratum in sorted(set(strata.values())):
        keys = sorted(key for key, of in strata.items() if of == stratum)
        count = counts[stratum]
        taken = {keys[position] for position in random.choice(len(keys), size=count, replace=False).tolist()}
        drawn += [Drawn(key, stratum, count / len(keys), key in taken) for key in keys]
    return drawn


def _sizes(strata: Mapping[int, str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for stratum in sorted(strata.values()):
        sizes[stratum] = sizes.get(stratum, 0) + 1
    return sizes


def _check_size(size: int) -> None:
    if size < 1:
        raise ValueError("a draw takes at least one answer")


_STRATEGIES: dict[Strategy, Callable[[list[Member], int, Random, DrawParams], list[Drawn]]] = {
    Strategy.ALL: _all,
    Strategy.UNIFORM: _uniform,
    Strategy.STRATIFIED: _stratified,
    Strategy.FAILS_PLUS_SHARE: _fails_plus_share,
    Strategy.UNCERTAINTY: _uncertainty,
    Strategy.HAND_PICKED: _hand_picked,
}
