"""Rotation of criteria: each drawn answer is rated on a random few of many criteria.

Every criterion is then rated on a sample with known probabilities, and nobody rates all criteria of every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from review.statistics.sampling.member import FAILED, DrawnAnswer

# Minimum per stratum, as for a corrected score.
MIN_ASKED = 2
# Separates the names of joined strata.
STRATUM_JOINER = " + "


def min_stratum_size(criteria: int, per_answer: int) -> int:
    """Number of answers of a stratum so that each of M criteria is rated on two of them: ``ceil(2 M / S)``."""
    return -(-MIN_ASKED * criteria // min(per_answer, criteria))


def rotate_criteria(
    drawn: Sequence[DrawnAnswer], fitting: Mapping[int, Sequence[int]], per_answer: int, random: np.random.Generator
) -> tuple[dict[int, frozenset[int]], dict[int, list[DrawnAnswer]]]:
    """Assign criteria to each sampled answer, and derive the sample of each criterion over the whole frame.

    ``fitting`` maps an answer to the criteria that apply to it, both by key. Of M applicable criteria, ``per_answer`` =
    S are rated: the answers of a stratum, in random order, take the next S places on a randomly ordered ring of the M
    criteria with a random start. Each criterion is rated with probability S / M, and equally often in any stretch of
    answers.

    An answer sampled with probability p has a criterion rated with p S / M; if M <= S, all are rated. An answer to
    which a criterion does not apply keeps p, because nothing about it is unknown.

    A stratum in which fewer than two answers have the criterion is joined to the next one, for this criterion. Judge
    failures stay separate. Joining depends on no rating and changes no probability."""
    criteria_by_answer = _assign_criteria(drawn, fitting, per_answer, random)
    criteria = dict.fromkeys(criterion for applicable in fitting.values() for criterion in applicable)
    return criteria_by_answer, {
        criterion: _join_thin_strata(
            _criterion_sample(drawn, fitting, criteria_by_answer, per_answer, criterion), fitting, criterion
        )
        for criterion in criteria
    }


def _assign_criteria(
    drawn: Sequence[DrawnAnswer], fitting: Mapping[int, Sequence[int]], per_answer: int, random: np.random.Generator
) -> dict[int, frozenset[int]]:
    sampled = [answer for answer in drawn if answer.sampled]
    shuffled = [sampled[position] for position in random.permutation(len(sampled))]
    rings: dict[tuple[int, ...], tuple[list[int], int]] = {}
    criteria_by_answer = {}
    for answer in sorted(shuffled, key=lambda answer: answer.stratum):
        applicable = tuple(fitting.get(answer.key, ()))
        if len(applicable) > per_answer:
            if applicable not in rings:
                ring = [applicable[position] for position in random.permutation(len(applicable))]
                rings[applicable] = ring, int(random.integers(len(applicable)))
            ring, position = rings[applicable]
            rings[applicable] = ring, position + per_answer
            applicable = tuple(ring[(position + step) % len(ring)] for step in range(per_answer))
        criteria_by_answer[answer.key] = frozenset(applicable)
    return criteria_by_answer


def _criterion_sample(
    drawn: Sequence[DrawnAnswer],
    fitting: Mapping[int, Sequence[int]],
    criteria_by_answer: Mapping[int, frozenset[int]],
    per_answer: int,
    criterion: int,
) -> list[DrawnAnswer]:
    sample = []
    for member in drawn:
        applicable = fitting.get(member.key, ())
        if criterion in applicable:
            share = min(1.0, per_answer / len(applicable))
            probability = None if member.probability is None else member.probability * share
            member = replace(
                member, probability=probability, sampled=criterion in criteria_by_answer.get(member.key, ())
            )
        sample.append(member)
    return sample


def _join_thin_strata(
    sample: Sequence[DrawnAnswer], fitting: Mapping[int, Sequence[int]], criterion: int
) -> list[DrawnAnswer]:
    """Join strata until each has the criterion on at least two answers, or on all it has."""
    applicable = [member for member in sample if criterion in fitting.get(member.key, ())]
    size, count = (
        Counter(applicable_member.stratum for applicable_member in applicable),
        Counter(applicable_member.stratum for applicable_member in applicable if applicable_member.sampled),
    )
    groups: list[list[str]] = []
    is_thin = False
    for stratum in sorted({member.stratum for member in sample} - {FAILED}):
        if is_thin:
            groups[-1].append(stratum)
        else:
            groups.append([stratum])
        total = sum(count[name] for name in groups[-1])
        is_thin = total < min(MIN_ASKED, sum(size[name] for name in groups[-1]))
    if is_thin and len(groups) > 1:
        last_group = groups.pop()
        groups[-1] += last_group
    names = {name: STRATUM_JOINER.join(group) for group in groups for name in group}
    return [replace(member, stratum=names.get(member.stratum, member.stratum)) for member in sample]
