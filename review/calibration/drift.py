"""How much of a change of score between two runs is their judge's: by anchors that were judged for both
(``review/calibration/anchors.py``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evaluation.models import Run
from review.models import AnchorCheck, AnchorVerdict
from review.statistics.acceptance import shift_of

LEAST = 20  # anchors that both judged
_Reading = dict[int, dict[int, tuple[float, str]]]  # metric -> anchor -> value and group


@dataclass(frozen=True, slots=True)
class Moved:
    """A mean change with the ends of its 95% interval (``None`` where nothing varies), over ``answers`` anchors."""

    change: float
    low: float | None
    high: float | None
    answers: int

    def left_of(self, value: float, low: float | None, high: float | None) -> Moved:
        """What this leaves of a change of score, as the system's; both were told by different answers, so that half
        widths add up by their squares."""
        ends = ((low, high), (self.low, self.high))
        halves = [(top - bottom) / 2.0 for bottom, top in ends if bottom is not None and top is not None]
        left, half = value - self.change, math.hypot(*halves)
        return Moved(left, left - half, left + half, self.answers) if halves else Moved(left, None, None, self.answers)


def judge_moved(ours: Run, baseline: Run) -> Mapping[int, Moved]:
    """By metric: this run's judge minus the baseline's on the same anchors, on the metric's scale. Nothing where both
    were judged by one version at the time of one check. One query where no anchors were judged."""
    rows = _HELD.filter(result__look__project=ours.project_id).distinct()
    held = [(pk, ended, judge, rubric) for pk, ended, judge, rubric in rows if ended]
    chosen = {run.pk: _checks(run, held) for run in (ours, baseline)} if held else {}
    if not all(chosen.values()) or not chosen or chosen[ours.pk] == chosen[baseline.pk]:
        return {}
    now, before = (_read(chosen[run.pk]) for run in (ours, baseline))
    found = {}
    for metric in sorted(now.keys() & before.keys()):
        both = sorted(now[metric].keys() & before[metric].keys())
        if len(both) >= LEAST:
            values = [[of[metric][answer][0] for answer in both] for of in (before, now)]
            shift = shift_of(values[0], values[1], [now[metric][answer][1] for answer in both], 1, 1)
            found[metric] = Moved(shift.change, shift.low, shift.high, shift.n)
    return found


#: Check, when it ended, name of the judge, version that judged.
_HELD = AnchorCheck.objects.filter(ended_at__isnull=False).values_list(
    "pk", "ended_at", "result__look__judge_version__name", "verdicts__rubric_version"
)


def _checks(run: Run, held: Sequence[tuple[int, datetime, str, int]]) -> set[tuple[int, int]]:
    """The checks in which the run's versions judged anchors, with the version: of each the last one before the run was
    made, else the first after."""
    seats = run.judges.filter(primary=True).values_list("judge_version__name", "rubric_version")
    found = set()
    for judge, rubric in seats:
        away = [((ended - run.created_at).total_seconds(), pk) for pk, ended, *of in held if of == [judge, rubric]]
        if away:
            found.add((min(away, key=lambda one: (one[0] > 0, abs(one[0])))[1], rubric))
    return found


def _read(checks: set[tuple[int, int]]) -> _Reading:
    found: _Reading = {}
    for check, rubric in checks:
        rows = AnchorVerdict.objects.filter(check_of=check, rubric_version=rubric, value__isnull=False)
        for metric, answer, value, group in rows.values_list("metric_id", "answer_id", "value", "group"):
            found.setdefault(metric, {})[answer] = (float(value or 0.0), group)
    return found
