"""Criteria in turn: each drawn answer is asked a few of many, chosen by chance, so that every one is rated on a sample
with known probabilities and nobody has to give all of them for every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from review.statistics.sampling.member import FAILED, Drawn

LEAST_ASKED = 2  # of a stratum, as for a corrected score
JOINED = " + "  # between the names of strata that became one


def least_of_stratum(criteria: int, each: int) -> int:
    """How many answers a stratum must give, for each of M criteria to be asked of two of them: ``ceil(2 M / S)``."""
    return -(-LEAST_ASKED * criteria // min(each, criteria))


def in_turn(
    drawn: Sequence[Drawn], fitting: Mapping[int, Sequence[int]], each: int, random: np.random.Generator
) -> tuple[dict[int, frozenset[int]], dict[int, list[Drawn]]]:
    """What each sampled answer is asked, and the sample that this makes for each criterion over the whole frame.

    ``fitting``: answer -> the criteria that apply to it, both by key. Of M that do, ``each`` = S are asked: the answers
    of one stratum, in random order, take the next S places round a ring of the M in random order that starts anywhere.
    A criterion is so asked with probability S / M, and equally often in any stretch of answers. With the draw's own p
    it was sampled with p S / M; all of M <= S are asked. An answer to which a criterion does not apply keeps p: nothing
    about it is unknown.

    A stratum that asks a criterion of fewer than two answers is joined to the next one, for this criterion; the judge's
    failures stay apart. What is joined depends on no rating, and the probabilities stay what they were.
    """
    asked = _asked(drawn, fitting, each, random)
    criteria = dict.fromkeys(one for several in fitting.values() for one in several)
    return asked, {one: _joined(_sample(drawn, fitting, asked, each, one), fitting, one) for one in criteria}


def _asked(
    drawn: Sequence[Drawn], fitting: Mapping[int, Sequence[int]], each: int, random: np.random.Generator
) -> dict[int, frozenset[int]]:
    sampled = [one for one in drawn if one.sampled]
    shuffled = [sampled[place] for place in random.permutation(len(sampled))]
    rings: dict[tuple[int, ...], tuple[list[int], int]] = {}
    asked = {}
    for one in sorted(shuffled, key=lambda one: one.stratum):
        own = tuple(fitting.get(one.key, ()))
        if len(own) > each:
            if own not in rings:
                ring = [own[place] for place in random.permutation(len(own))]
                rings[own] = ring, int(random.integers(len(own)))
            ring, place = rings[own]
            rings[own] = ring, place + each
            own = tuple(ring[(place + step) % len(ring)] for step in range(each))
        asked[one.key] = frozenset(own)
    return asked


def _sample(
    drawn: Sequence[Drawn],
    fitting: Mapping[int, Sequence[int]],
    asked: Mapping[int, frozenset[int]],
    each: int,
    one: int,
) -> list[Drawn]:
    found = []
    for member in drawn:
        own = fitting.get(member.key, ())
        if one in own:
            share = min(1.0, each / len(own))
            chance = None if member.probability is None else member.probability * share
            member = replace(member, probability=chance, sampled=one in asked.get(member.key, ()))
        found.append(member)
    return found


def _joined(sample: Sequence[Drawn], fitting: Mapping[int, Sequence[int]], one: int) -> list[Drawn]:
    """The sample with strata that ask the criterion of two answers at least, or of all they have."""
    applies = [member for member in sample if one in fitting.get(member.key, ())]
    size, count = Counter(m.stratum for m in applies), Counter(m.stratum for m in applies if m.sampled)
    groups: list[list[str]] = []
    thin = False
    for stratum in sorted({member.stratum for member in sample} - {FAILED}):
        if thin:
            groups[-1].append(stratum)
        else:
            groups.append([stratum])
        total = sum(count[name] for name in groups[-1])
        thin = total < min(LEAST_ASKED, sum(size[name] for name in groups[-1]))
    if thin and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    names = {name: JOINED.join(group) for group in groups for name in group}
    return [replace(member, stratum=names.get(member.stratum, member.stratum)) for member in sample]
