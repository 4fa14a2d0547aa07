"""A draw: each stratum's share, the sample, each member's probability; and giving the items to people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluation.core.errors import Refused
from review.statistics.agreement.statistic import Array
from review.statistics.sampling.member import FAILED, Drawn, DrawParams, Member, Strategy, stratify


def allocate(
    sizes: Mapping[str, int], total: int, per_stratum: int, deviations: Mapping[str, float] | None = None
) -> dict[str, int]:
    """Share ``total`` answers among strata of the given ``sizes``.

    Proportional to size, or with ``deviations`` to size times standard deviation (J. Neyman, 1934, JRSS 97), where a
    stratum without a deviation gets the mean of the known ones. Every stratum gets ``per_stratum`` or all it has, and
    none more than it has; the remainders go to the largest fractions, so that the sum is ``total``.

    :raises Refused: ``draw_too_small`` when the least samples already need more than ``total``.
    """
    least = {stratum: min(per_stratum, size) for stratum, size in sizes.items()}
    total = min(total, sum(sizes.values()))
    if sum(least.values()) > total:
        raise Refused("draw_too_small", needed=sum(least.values()), strata=len(sizes))
    shares = _shares(sizes, deviations)
    fixed: dict[str, int] = {}
    while True:
        open_strata = [stratum for stratum in sizes if stratum not in fixed]
        wanted = _scaled({stratum: shares[stratum] for stratum in open_strata}, total - sum(fixed.values()))
        below = {stratum: least[stratum] for stratum in open_strata if wanted[stratum] < least[stratum]}
        above = {stratum: sizes[stratum] for stratum in open_strata if wanted[stratum] > sizes[stratum]}
        if not below and not above:
            break
        # Fixing both kinds at once could overshoot the total; the kind with the larger violation goes first.
        missing = sum(least[stratum] - wanted[stratum] for stratum in below)
        excess = sum(wanted[stratum] - sizes[stratum] for stratum in above)
        fixed |= below if missing >= excess else above
    return _rounded(fixed, wanted, total, sizes)


def _shares(sizes: Mapping[str, int], deviations: Mapping[str, float] | None) -> dict[str, float]:
    known = [deviations[stratum] for stratum in sizes if stratum in deviations] if deviations else []
    if not deviations or not known or sum(known) <= 0:
        return {stratum: float(size) for stratum, size in sizes.items()}
    usual = sum(known) / len(known)
    return {stratum: size * deviations.get(stratum, usual) for stratum, size in sizes.items()}


def _scaled(shares: Mapping[str, float], total: float) -> dict[str, float]:
    """``total`` in proportion to ``shares``; evenly where these are all zero."""
    whole = sum(shares.values())
    if whole <= 0:
        return dict.fromkeys(shares, total / len(shares)) if shares else {}
    return {stratum: total * share / whole for stratum, share in shares.items()}


def _rounded(
    fixed: Mapping[str, int], wanted: Mapping[str, float], total: int, sizes: Mapping[str, int]
) -> dict[str, int]:
    counts = {stratum: fixed.get(stratum, int(wanted.get(stratum, 0.0) + 1e-9)) for stratum in sizes}
    left = total - sum(counts.values())
    by_fraction = sorted(wanted, key=lambda stratum: (counts[stratum] - wanted[stratum], -sizes[stratum], stratum))
    for stratum in by_fraction:
        if left <= 0:
            break
        if stratum not in fixed and counts[stratum] < sizes[stratum]:
            counts[stratum] += 1
            left -= 1
    return counts


UNIFORM_SHARE = 0.5  # half of the size is spread evenly, so that no answer's weight explodes


def uncertainty_probabilities(keys: Sequence[int], spread: Mapping[int, float], size: int) -> Array:
    """The probability of each answer under Poisson sampling with expected size ``size``.

    Half proportional to the spread, half uniform; an answer without a spread has the uniform half. Probabilities
    above 1 are cut and the rest raised, so that their sum stays ``size``.

    :raises Refused: ``no_spread`` where no answer has a positive spread.
    """
    values = np.array([max(0.0, spread.get(key, 0.0)) for key in keys], dtype=np.float64)
    if not np.isfinite(values).all() or values.sum() <= 0:
        raise Refused("no_spread")
    mass = (1.0 - UNIFORM_SHARE) * values / values.sum() + UNIFORM_SHARE / len(values)
    sure = np.zeros(len(values), dtype=bool)
    while True:
        probability = np.where(sure, 1.0, 0.0)
        if not sure.all():
            probability[~sure] = (size - sure.sum()) * mass[~sure] / mass[~sure].sum()
        over = (probability > 1.0) & ~sure
        if not over.any():
            return np.asarray(np.clip(probability, 0.0, 1.0))
        sure |= over


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
    counts = allocate(Counter(sorted(strata.values())), size, params.per_stratum, params.pilot_sd or None)
    return _by_strata(strata, counts, random)


def _fails_plus_share(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[Drawn]:
    if params.fail_below is None:
        raise Refused("no_fail_threshold")
    strata = {member.key: _fail_stratum(member, params.fail_below) for member in frame}
    sizes = Counter(sorted(strata.values()))
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


def in_turn(needs: Sequence[int], people: Sequence[int]) -> list[tuple[int, ...]]:
    """The people of each item, one after the other round the table; ``needs`` are how many different ones each takes.

    :raises ValueError: when an item needs more people than there are.
    """
    _check(needs, people)
    dealt: list[tuple[int, ...]] = []
    place = 0
    for need in needs:
        dealt.append(tuple(people[(place + i) % len(people)] for i in range(need)))
        place += need
    return dealt


def by_load(needs: Sequence[int], people: Sequence[int], loads: Mapping[int, int]) -> list[tuple[int, ...]]:
    """The people of each item: those who have least to do at that moment, their items so far counted (``loads``: what
    they had before); where equal, in the order of ``people``.

    :raises ValueError: when an item needs more people than there are.
    """
    _check(needs, people)
    having = {one: loads.get(one, 0) for one in people}
    return [_least(need, people, having) for need in needs]


def by_field(
    needs: Sequence[int],
    tags: Sequence[Sequence[str]],
    people: Sequence[int],
    fields: Mapping[str, Sequence[int]],
    loads: Mapping[int, int],
) -> list[tuple[int, ...]]:
    """The people of each item: of those who have one of its tags, whoever has least to do; an item with no such tag
    goes to whoever of all has least to do.

    :raises Refused: ``too_few_for_tag`` where an item needs more people than have its tags.
    """
    _check(needs, people)
    having = {one: loads.get(one, 0) for one in people}
    dealt = []
    for need, own in zip(needs, tags, strict=True):
        fitting = {one for tag in own for one in fields.get(tag, ())}
        able = [one for one in people if one in fitting] or list(people)
        if len(able) < need:
            raise Refused("too_few_for_tag", tags=sorted(set(own) & set(fields)), needed=need, people=len(able))
        dealt.append(_least(need, able, having))
    return dealt


def _least(need: int, able: Sequence[int], having: dict[int, int]) -> tuple[int, ...]:
    order = {one: place for place, one in enumerate(able)}
    chosen = tuple(sorted(able, key=lambda one: (having[one], order[one]))[:need])
    for one in chosen:
        having[one] += 1
    return chosen


def _check(needs: Sequence[int], people: Sequence[int]) -> None:
    if needs and max(needs) > len(people):
        raise ValueError("an item needs more people than there are")
