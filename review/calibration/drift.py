"""Share of a score change between two runs that is due to the judge, from anchors judged for both runs.

See ``review/calibration/anchors.py``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evaluation.models import Run
from review.models import AnchorCheck, AnchorVerdict
from review.statistics.acceptance import verdict_shift

# Anchors that both must have judged.
MIN_ANCHORS = 20
# Metric -> anchor -> value and group.
_AnchorValues = dict[int, dict[int, tuple[float, str]]]


@dataclass(frozen=True, slots=True)
class JudgeShift:
    """A mean change with its 95% interval (``None`` where nothing varies), over ``answers`` anchors."""

    change: float
    low: float | None
    high: float | None
    answers: int

    def system_change(self, value: float, low: float | None, high: float | None) -> JudgeShift:
        """Return the rest of a score change, as the system's own.

        Score change and shift are estimated on different answers, so their half-widths add in squares."""
        ends = ((low, high), (self.low, self.high))
        halves = [(top - bottom) / 2.0 for bottom, top in ends if bottom is not None and top is not None]
        remainder, half = value - self.change, math.hypot(*halves)
        return (
            JudgeShift(remainder, remainder - half, remainder + half, self.answers)
            if halves
            else JudgeShift(remainder, None, None, self.answers)
        )


def judge_shifts(current: Run, baseline: Run) -> Mapping[int, JudgeShift]:
    """Return this run's judge minus the baseline's on the same anchors, by metric, on the metric's scale.

    Empty if one version judged both at the time of one check. One query where no anchors were judged."""
    rows = _ENDED_CHECKS.filter(result__test__project=current.project_id).distinct()
    checks = [(pk, ended, judge, rubric) for pk, ended, judge, rubric in rows if ended]
    chosen_checks = {run.pk: _choose_checks(run, checks) for run in (current, baseline)} if checks else {}
    if not all(chosen_checks.values()) or not chosen_checks or chosen_checks[current.pk] == chosen_checks[baseline.pk]:
        return {}
    current_values, baseline_values = (_read_values(chosen_checks[run.pk]) for run in (current, baseline))
    shifts = {}
    for metric in sorted(current_values.keys() & baseline_values.keys()):
        shared = sorted(current_values[metric].keys() & baseline_values[metric].keys())
        if len(shared) >= MIN_ANCHORS:
            values = [
                [readings[metric][answer][0] for answer in shared] for readings in (baseline_values, current_values)
            ]
            shift = verdict_shift(values[0], values[1], [current_values[metric][answer][1] for answer in shared], 1, 1)
            shifts[metric] = JudgeShift(shift.change, shift.low, shift.high, shift.n)
    return shifts


# Check, its end, judge name, and the version that judged.
_ENDED_CHECKS = AnchorCheck.objects.filter(ended_at__isnull=False).values_list(
    "pk", "ended_at", "result__test__judge_version__name", "verdicts__rubric_version"
)


def _choose_checks(run: Run, checks: Sequence[tuple[int, datetime, str, int]]) -> set[tuple[int, int]]:
    """Return the checks in which the run's versions judged anchors, with the version.

    For each version the last check before the run was created, otherwise the first one after."""
    run_judges = run.judges.filter(primary=True).values_list("judge_version__name", "rubric_version")
    chosen = set()
    for judge, rubric in run_judges:
        distances = [
            ((ended - run.created_at).total_seconds(), pk)
            for pk, ended, *judge_and_rubric in checks
            if judge_and_rubric == [judge, rubric]
        ]
        if distances:
            chosen.add((min(distances, key=lambda candidate: (candidate[0] > 0, abs(candidate[0])))[1], rubric))
    return chosen


def _read_values(checks: set[tuple[int, int]]) -> _AnchorValues:
    readings: _AnchorValues = {}
    for check, rubric in checks:
        rows = AnchorVerdict.objects.filter(check_of=check, rubric_version=rubric, value__isnull=False)
        for metric, answer, value, group in rows.values_list("metric_id", "answer_id", "value", "group"):
            readings.setdefault(metric, {})[answer] = (float(value or 0.0), group)
    return readings
