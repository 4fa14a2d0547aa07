"""How many answers each stratum gives."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.core.errors import Refused


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
