"""The first values of a judge in a run: if all of them fail alike, the run pauses before more is paid for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evaluation.core.samples import Result, Status
from evaluation.models import MetricDefinition, Run, RunJudge, Score

# Values of one metric.
FIRST_VALUES = 10
# The reason of a paused run.
FIRST_VALUES_FAIL_ALIKE = "first_values"
# Failures that are not the judge's.
_UNRELATED_FAILURES = frozenset({"upstream", "crash_loop"})


@dataclass
class FirstValues:
    """Counts the failures of the first values by judge and metric, until one is scored.

    ``sent`` is the number of answers judged in this session. Before the first scored value, at most ``FIRST_VALUES``
    are in flight, which limits the cost of a judge that gives none."""

    sent: int = 0
    scored: set[tuple[int, str]] = field(default_factory=set)
    failures: dict[tuple[int, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # True once nothing needs to be checked any more.
    is_decided: bool = False

    def room(self, in_flight: int) -> int | None:
        """The number of units that may still be claimed; ``None`` for no limit."""
        if self.is_decided or self.scored or self.sent >= FIRST_VALUES:
            return None
        return FIRST_VALUES - self.sent - in_flight

    def count(self, judge: int, results: Mapping[str, Result]) -> str:
        """Count an answer's results; the common failure of a metric's first values if the run has to pause, else
        empty."""
        if self.is_decided:
            return ""
        self.sent += 1
        shared_failure = ""
        for name, result in results.items():
            if result.status is Status.SCORED:
                self.scored.add((judge, name))
            elif result.status is Status.FAILED:
                shared_failure = self._fail(judge, name, result) or shared_failure
        return shared_failure

    def _fail(self, judge: int, name: str, result: Result) -> str:
        code = result.reason.partition(": ")[0]
        if code in _UNRELATED_FAILURES or (judge, name) in self.scored:
            return ""
        failures = self.failures[judge, name]
        failures[code] += 1
        if failures.total() < FIRST_VALUES or len(failures) > 1:
            return ""
        received = result.detail.get("got")
        return f"{code}: {name} {received}" if received else code


def first_values(
    run: Run, judges: Iterable[RunJudge], metrics: Mapping[int, Mapping[str, MetricDefinition]]
) -> FirstValues:
    """The state at the start of a session: decided if a value was scored before. Values from before the run was last
    resumed do not count."""
    keys = [judge.pk for judge in judges if judge.judge_version.endpoint_id is not None]
    values = FirstValues(is_decided=not keys)
    resumptions = (
        run.events.filter(verb__in=["resumed", "retried"]).order_by("-id").values_list("created_at", flat=True)
    )
    resumed_at = resumptions.first()
    for key in keys:
        scores = Score.objects.filter(run=run, metric__in=metrics[key].values(), unit__run_judge=key)
        if scores.filter(status="scored").exists():
            values.is_decided = True
            return values
        failed = scores.filter(status="failed", **({"created_at__gt": resumed_at} if resumed_at else {}))
        for name, reason in failed.order_by("id").values_list("metric__name", "reason")[
            : FIRST_VALUES * len(metrics[key])
        ]:
            values.count(key, {name: Result.failed(reason)})
        values.sent = 0
    return values
