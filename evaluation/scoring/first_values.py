"""The first values that a judge gives in a run: where all of them fail alike, the rest would be paid for nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evaluation.core.samples import Result, Status
from evaluation.models import MetricDefinition, Run, RunJudge, Score

FIRST = 10  # values of one metric
ALIKE = "first_values"  # why a run is paused
_OTHERS = frozenset({"upstream", "crash_loop"})  # failures that are none of the judge's


@dataclass
class FirstValues:
    """Counts, by judge of the run and metric, how the first values failed, until one is scored.

    ``sent`` is how many answers were judged in this turn; before the first value is scored no more than ``FIRST`` are
    in hands, so that a judge that gives none costs no more calls than that.
    """

    sent: int = 0
    scored: set[tuple[int, str]] = field(default_factory=set)
    failures: dict[tuple[int, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    settled: bool = False  # nothing is looked at any more

    def room(self, in_hands: int) -> int | None:
        """How many more may be taken; ``None`` where that is not limited."""
        if self.settled or self.scored or self.sent >= FIRST:
            return None
        return FIRST - self.sent - in_hands

    def count(self, judge: int, results: Mapping[str, Result]) -> str:
        """Count an answer's results; why the run has to pause, empty where it does not: the failure that the first
        values of a metric have in common."""
        if self.settled:
            return ""
        self.sent += 1
        alike = ""
        for name, result in results.items():
            if result.status is Status.SCORED:
                self.scored.add((judge, name))
            elif result.status is Status.FAILED:
                alike = self._fail(judge, name, result) or alike
        return alike

    def _fail(self, judge: int, name: str, result: Result) -> str:
        code = result.reason.partition(": ")[0]
        if code in _OTHERS or (judge, name) in self.scored:
            return ""
        failures = self.failures[judge, name]
        failures[code] += 1
        if failures.total() < FIRST or len(failures) > 1:
            return ""
        got = result.detail.get("got")
        return f"{code}: {name} {got}" if got else code


def first_values(
    run: Run, judges: Iterable[RunJudge], metrics: Mapping[int, Mapping[str, MetricDefinition]]
) -> FirstValues:
    """What is known of the judges' first values when a turn begins: nothing is looked at where one was scored before.
    Values from before somebody let the run go on do not count."""
    keys = [judge.pk for judge in judges if judge.judge_version.endpoint_id is not None]
    found = FirstValues(settled=not keys)
    since = run.events.filter(verb__in=["resumed", "retried"]).order_by("-id").values_list("created_at", flat=True)
    let_go_on = since.first()
    for key in keys:
        scores = Score.objects.filter(run=run, metric__in=metrics[key].values(), unit__run_judge=key)
        if scores.filter(status="scored").exists():
            found.settled = True
            return found
        failed = scores.filter(status="failed", **({"created_at__gt": let_go_on} if let_go_on else {}))
        for name, reason in failed.order_by("id").values_list("metric__name", "reason")[: FIRST * len(metrics[key])]:
            found.count(key, {name: Result.failed(reason)})
        found.sent = 0
    return found
