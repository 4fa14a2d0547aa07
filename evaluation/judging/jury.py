"""Several judges as one: how their verdicts on one answer become the jury's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from enum import StrEnum

from evaluation.core.samples import Result, Status


class JuryRule(StrEnum):
    """How numbers are joined. Classes are always decided by a majority."""

    MEAN = "mean"
    MEDIAN = "median"
    MAJORITY = "majority"


def joined(members: Mapping[str, Result], rule: JuryRule) -> Result:
    """The jury's result from those of its members by name.

    More than half of the members have to give a value; where most find that the metric does not apply, so does the
    jury. The mean and the median (of an even number: the mean of the middle two) are on the metric's scale but need
    not be a level; a majority is what more than half of all members said. The members' values and their spread (the
    standard deviation of the population, for numbers) stand in the details.

    Fails with ``jury_short`` where too few members gave a value, ``jury_split`` where no majority was found.
    """
    scored = {name: result for name, result in members.items() if result.status is Status.SCORED}
    said = {name: _said(result) for name, result in sorted(members.items())}
    detail: dict[str, object] = {"rule": str(rule), "members": said}
    if 2 * len(scored) <= len(members):
        aside = [result for result in members.values() if result.status is Status.NOT_APPLICABLE]
        if 2 * len(aside) > len(members):
            return Result.not_applicable(aside[0].reason)
        return Result.failed("jury_short", detail=detail)
    values = [result.value for result in scored.values() if result.value is not None]
    if len(values) == len(scored):
        detail["spread"] = statistics.pstdev(values)
    if rule is JuryRule.MAJORITY or len(values) < len(scored):
        return _majority(list(scored.values()), len(members), detail)
    value = math.fsum(values) / len(values) if rule is JuryRule.MEAN else statistics.median(values)
    return Result.scored(value, detail=detail)


def _majority(scored: Sequence[Result], size: int, detail: Mapping[str, object]) -> Result:
    said = [_said(result) for result in scored]
    commonest = statistics.mode(said)
    if 2 * said.count(commonest) <= size:
        return Result.failed("jury_split", detail=detail)
    if isinstance(commonest, str):
        return Result.labelled(commonest, detail=detail)
    return Result.scored(float(commonest), detail=detail)


def _said(result: Result) -> float | str:
    """The value or label of a scored result, else its reason."""
    if result.status is not Status.SCORED:
        return result.reason
    return result.label if result.value is None else result.value  # type: ignore[return-value]  # one of them stands
