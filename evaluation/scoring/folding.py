"""Several judgements of one answer by one judge as one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from evaluation.core.samples import Result, Status

Row = tuple[str, float | None, str | None, str]  # status, value, label, reason


def folded(repeats: Sequence[Row]) -> Result:
    """One result of several repeats: the mean of the numbers that were scored (classes: the commonest, of several the
    first said), else the first failure, else the first reason why it does not apply."""
    values = [value for _, value, _, _ in repeats if value is not None]
    if values:
        return Result.scored(math.fsum(values) / len(values))
    labels = [label for _, _, label, _ in repeats if label is not None]
    if labels:
        return Result.labelled(statistics.mode(labels))
    failures = [reason for status, _, _, reason in repeats if status == Status.FAILED]
    return Result.failed(failures[0]) if failures else Result.not_applicable(repeats[0][3])
