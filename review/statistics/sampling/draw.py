"""Sampling of answers for review: allocation to strata, draw with probabilities, and assignment to reviewers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evaluation.core.errors import DomainError
from review.statistics.agreement.statistic import Array
from review.statistics.sampling.member import FAILED, DrawnAnswer, DrawParams, Member, Strategy, stratify


def allocate(
    sizes: Mapping[str, int], total: int, per_stratum: int, deviations: Mapping[str, float] | None = None
) -> dict[str, int]:
    """Allocate ``total`` answers to strata of the given ``sizes``.

    The allocation is proportional to size, or with ``deviations`` to size times standard deviation (J. Neyman, 1934,
    JRSS 97). A stratum without a deviation gets the mean of the known ones. Every stratum gets at least
    ``per_stratum``, or all it has, and never more than it has. Remainders go to the largest fractions, so that the sum
    is ``total``.

    :raises DomainError: ``draw_too_small`` if the minimum samples need more than ``total``."""
    minimum = {stratum: min(per_stratum, size) for stratum, size in sizes.items()}
    total = min(total, sum(sizes.values()))
    if sum(minimum.values()) > total:
        raise DomainError("draw_too_small", needed=sum(minimum.values()), strata=len(sizes))
    shares = _allocation_shares(sizes, deviations)
    fixed_counts: dict[str, int] = {}
    while True:
        open_strata = [stratum for stratum in sizes if stratum not in fixed_counts]
        targets = _scaled_shares(
            {stratum: shares[stratum] for stratum in open_strata}, total - sum(fixed_counts.values())
        )
        below_minimum = {stratum: minimum[stratum] for stratum in open_strata if targets[stratum] < minimum[stratum]}
        above_size = {stratum: sizes[stratum] for stratum in open_strata if targets[stratum] > sizes[stratum]}
        if not below_minimum and not above_size:
            break
        # Fixing both kinds at once could overshoot the total; the kind with the larger violation goes first.
        shortfall = sum(minimum[stratum] - targets[stratum] for stratum in below_minimum)
        excess = sum(targets[stratum] - sizes[stratum] for stratum in above_size)
        fixed_counts |= below_minimum if shortfall >= excess else above_size
    return _rounded_allocation(fixed_counts, targets, total, sizes)


def _allocation_shares(sizes: Mapping[str, int], deviations: Mapping[str, float] | None) -> dict[str, float]:
    known_deviations = [deviations[stratum] for stratum in sizes if stratum in deviations] if deviations else []
    if not deviations or not known_deviations or sum(known_deviations) <= 0:
        return {stratum: float(size) for stratum, size in sizes.items()}
    mean_deviation = sum(known_deviations) / len(known_deviations)
    return {stratum: size * deviations.get(stratum, mean_deviation) for stratum, size in sizes.items()}


def _scaled_shares(shares: Mapping[str, float], total: float) -> dict[str, float]:
    """Split ``total`` in proportion to ``shares``, or evenly if all are zero."""
    total_share = sum(shares.values())
    if total_share <= 0:
        return dict.fromkeys(shares, total / len(shares)) if shares else {}
    return {stratum: total * share / total_share for stratum, share in shares.items()}


def _rounded_allocation(
    fixed: Mapping[str, int], targets: Mapping[str, float], total: int, sizes: Mapping[str, int]
) -> dict[str, int]:
    counts = {stratum: fixed.get(stratum, int(targets.get(stratum, 0.0) + 1e-9)) for stratum in sizes}
    remaining = total - sum(counts.values())
    by_fraction = sorted(targets, key=lambda stratum: (counts[stratum] - targets[stratum], -sizes[stratum], stratum))
    for stratum in by_fraction:
        if remaining <= 0:
            break
        if stratum not in fixed and counts[stratum] < sizes[stratum]:
            counts[stratum] += 1
            remaining -= 1
    return counts


# This share of the size is spread evenly, so that no answer gets an extreme weight.
UNIFORM_SHARE = 0.5


def uncertainty_probabilities(keys: Sequence[int], spread: Mapping[int, float], size: int) -> Array:
    """Probability of each answer under Poisson sampling with expected size ``size``.

    Half of it is proportional to the spread, half uniform; an answer without a spread has the uniform half.
    Probabilities above 1 are cut and the others raised, so that the sum stays ``size``.

    :raises DomainError: ``no_spread`` if no answer has a positive spread."""
    values = np.array([max(0.0, spread.get(key, 0.0)) for key in keys], dtype=np.float64)
    if not np.isfinite(values).all() or values.sum() <= 0:
        raise DomainError("no_spread")
    mass = (1.0 - UNIFORM_SHARE) * values / values.sum() + UNIFORM_SHARE / len(values)
    is_certain = np.zeros(len(values), dtype=bool)
    while True:
        probability = np.where(is_certain, 1.0, 0.0)
        if not is_certain.all():
            probability[~is_certain] = (size - is_certain.sum()) * mass[~is_certain] / mass[~is_certain].sum()
        exceeding = (probability > 1.0) & ~is_certain
        if not exceeding.any():
            return np.asarray(np.clip(probability, 0.0, 1.0))
        is_certain |= exceeding


CERTAIN, ALL, FAILS, REST = "certain", "all", "fails", "rest"
# Answers with a standing rating: known with certainty, and not asked again.
STANDING = "standing"
# Questions of a release difference whose answers changed.
CHANGED = "changed"
Random = np.random.Generator


def draw(
    members: Sequence[Member],
    strategy: Strategy | str,
    size: int,
    seed: int,
    params: DrawParams | None = None,
) -> list[DrawnAnswer]:
    """Draw a sample; the result lists the whole frame, by key.

    The same seed and frame give the same sample, in any order of ``members``. A size beyond the frame takes all of it.
    ``uncertainty`` reaches its size on average. ``fails_plus_share`` with a share, ``all`` and ``hand_picked`` ignore
    it.

    :raises DomainError: ``empty_frame``, ``draw_too_small``, ``no_spread``, ``no_fail_threshold``,
    ``fails_exceed_size``, ``nothing_rated_once`` or ``unknown_keys``.
    :raises ValueError: for duplicate keys or a size below 1."""
    strategy = Strategy(strategy)
    params = params or DrawParams()
    frame = sorted(members, key=lambda member: member.key)
    keys = [member.key for member in frame]
    if len(set(keys)) != len(keys):
        raise ValueError("a frame holds every answer once")
    if not frame:
        raise DomainError("empty_frame")
    if not (params.certain | params.keys) <= set(keys):
        raise DomainError("unknown_keys", keys=sorted((params.certain | params.keys) - set(keys)))
    # The selected answers are the whole draw.
    seen_before = params.certain if strategy.has_probabilities else frozenset()
    certain = [DrawnAnswer(key, CERTAIN, 1.0, sampled=True) for key in keys if key in seen_before]
    remaining = [member for member in frame if member.key not in seen_before]
    drawn = _STRATEGIES[strategy](remaining, size, np.random.default_rng(seed), params) if remaining else []
    return sorted([*certain, *drawn], key=lambda answer: answer.key)


def _draw_all(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    return [DrawnAnswer(member.key, ALL, 1.0, sampled=True) for member in frame]


def _draw_uniform(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    _check_size(size)
    return _draw_by_strata({member.key: ALL for member in frame}, {ALL: min(size, len(frame))}, random)


def _draw_stratified(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    _check_size(size)
    strata = stratify(frame, params.merge_below, max_strata=max(1, size // max(1, params.per_stratum)))
    counts = allocate(Counter(sorted(strata.values())), size, params.per_stratum, params.pilot_sd or None)
    return _draw_by_strata(strata, counts, random)


def _draw_fails_plus_share(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    if params.fail_below is None:
        raise DomainError("no_fail_threshold")
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
            raise DomainError("fails_exceed_size", fails=fails, size=size)
        counts = allocate(sizes, size - fails, params.per_stratum)
    return _draw_by_strata(strata, counts | ({FAILS: fails} if fails else {}), random)


def _fail_stratum(member: Member, fail_below: float) -> str:
    """Stratum of an answer by pass and fail. Unscored answers join the rest; judge failures are a stratum of their
    own."""
    if member.failed:
        return FAILED
    return FAILS if member.judge_score is not None and member.judge_score < fail_below else REST


def _draw_uncertainty(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    _check_size(size)
    keys = [member.key for member in frame]
    probabilities = uncertainty_probabilities(keys, params.spread, min(size, len(keys)))
    is_sampled = random.random(len(keys)) < probabilities
    return [
        DrawnAnswer(key, ALL, float(probability), bool(sampled))
        for key, probability, sampled in zip(keys, probabilities, is_sampled, strict=True)
    ]


def _draw_hand_picked(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    return [DrawnAnswer(member.key, ALL, None, member.key in params.keys) for member in frame]


def _draw_rated(frame: list[Member], size: int, random: Random, params: DrawParams) -> list[DrawnAnswer]:
    _check_size(size)
    keys = sorted(params.keys)
    if not keys:
        raise DomainError("nothing_rated_once")
    sampled_keys = {keys[position] for position in random.permutation(len(keys))[:size].tolist()}
    return [DrawnAnswer(member.key, ALL, None, member.key in sampled_keys) for member in frame]


def _draw_by_strata(strata: Mapping[int, str], counts: Mapping[str, int], random: Random) -> list[DrawnAnswer]:
    """Simple random sampling without replacement within each stratum, with probability n_h / N_h."""
    drawn: list[DrawnAnswer] = []
    for stratum in sorted(set(strata.values())):
        keys = sorted(key for key, answer_stratum in strata.items() if answer_stratum == stratum)
        count = counts[stratum]
        sampled_keys = {keys[position] for position in random.choice(len(keys), size=count, replace=False).tolist()}
        drawn += [DrawnAnswer(key, stratum, count / len(keys), key in sampled_keys) for key in keys]
    return drawn


def _check_size(size: int) -> None:
    if size < 1:
        raise ValueError("a draw takes at least one answer")


_STRATEGIES: dict[Strategy, Callable[[list[Member], int, Random, DrawParams], list[DrawnAnswer]]] = {
    Strategy.ALL: _draw_all,
    Strategy.UNIFORM: _draw_uniform,
    Strategy.STRATIFIED: _draw_stratified,
    Strategy.FAILS_PLUS_SHARE: _draw_fails_plus_share,
    Strategy.UNCERTAINTY: _draw_uncertainty,
    Strategy.HAND_PICKED: _draw_hand_picked,
    Strategy.SECOND_OPINION: _draw_rated,
    Strategy.RECHECK: _draw_rated,
}


def assign_round_robin(needs: Sequence[int], people: Sequence[int]) -> list[tuple[int, ...]]:
    """Assign people to items in rotation; ``needs`` is the number of different people per item.

    :raises ValueError: if an item needs more people than there are."""
    _check_reviewer_count(needs, people)
    assigned: list[tuple[int, ...]] = []
    offset = 0
    for need in needs:
        assigned.append(tuple(people[(offset + i) % len(people)] for i in range(need)))
        offset += need
    return assigned


def assign_by_load(needs: Sequence[int], people: Sequence[int], loads: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Assign to each item the people with the fewest items so far; ties follow the order of ``people``.

    ``loads`` holds their earlier items.

    :raises ValueError: if an item needs more people than there are."""
    _check_reviewer_count(needs, people)
    load_by_person = {person: loads.get(person, 0) for person in people}
    return [_least_loaded(need, people, load_by_person) for need in needs]


def assign_by_tag(
    needs: Sequence[int],
    tags: Sequence[Sequence[str]],
    people: Sequence[int],
    fields: Mapping[str, Sequence[int]],
    loads: Mapping[int, int],
) -> list[tuple[int, ...]]:
    """Assign to each item the people with one of its tags who have the fewest items so far.

    An item with no such tag goes to the people with the fewest items.

    :raises DomainError: ``too_few_for_tag`` if an item needs more people than have its tags."""
    _check_reviewer_count(needs, people)
    load_by_person = {person: loads.get(person, 0) for person in people}
    assigned = []
    for need, item_tags in zip(needs, tags, strict=True):
        tagged = {person for tag in item_tags for person in fields.get(tag, ())}
        eligible = [person for person in people if person in tagged] or list(people)
        if len(eligible) < need:
            raise DomainError(
                "too_few_for_tag", tags=sorted(set(item_tags) & set(fields)), needed=need, people=len(eligible)
            )
        assigned.append(_least_loaded(need, eligible, load_by_person))
    return assigned


def _least_loaded(need: int, eligible: Sequence[int], load_by_person: dict[int, int]) -> tuple[int, ...]:
    order = {person: position for position, person in enumerate(eligible)}
    chosen = tuple(sorted(eligible, key=lambda person: (load_by_person[person], order[person]))[:need])
    for person in chosen:
        load_by_person[person] += 1
    return chosen


def _check_reviewer_count(needs: Sequence[int], people: Sequence[int]) -> None:
    if needs and max(needs) > len(people):
        raise ValueError("an item needs more people than there are")
