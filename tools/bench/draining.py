"""Drain a prepared run and print the measurements as JSON: ``python -m tools.bench.draining RUN [PROFILE]``.

The judge is checked first (``preflight``: seconds of a few calls one after another, whatever the run's size), outside
the measured time: ``ready`` is printed, and a line on the standard input starts the drain, so that several processes
can share a run. ``started`` and ``ended``, the commit of the process's last judged score, are on the machine's
monotonic clock; ``cpu`` is the process's user and system time over that period. With PROFILE the profile of the
ledger's thread is written to that file."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import cProfile
import json
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db.models import Avg

from evaluation.models import Reply, Run, Score
from evaluation.runs.execution import drain, preflight
from evaluation.scoring import judges
from evaluation.worker.steps import Steps

end_times: list[tuple[float, float]] = []


class TimedJudgeSession(judges.JudgeSession):
    """A judge session that records when its last score was committed."""

    def steps(self) -> Steps[int]:
        call_count = yield from super().steps()
        end_times.append((time.monotonic(), time.process_time()))
        return call_count


def main(run_id: int, profile: str) -> dict[str, float]:
    """Drain the run and return the measurements."""
    judges.JudgeSession = TimedJudgeSession  # type: ignore[misc]
    sys.modules["evaluation.runs.execution"].JudgeSession = TimedJudgeSession  # type: ignore[attr-defined]
    began = time.monotonic()
    preflight(Run.objects.get(pk=run_id), began + 60)
    ready = time.monotonic()
    print("ready", flush=True)
    sys.stdin.readline()
    tracer = cProfile.Profile() if profile else None
    start = time.monotonic(), time.process_time()
    if tracer:
        tracer.runcall(drain, run_id, seconds=3600)
        tracer.dump_stats(profile)
    else:
        drain(run_id, seconds=3600)
    end = end_times[-1] if end_times else start
    return {
        "started": start[0],
        "ended": end[0],
        "cpu": end[1] - start[1],
        "preflight": ready - began,
        "calls": Reply.objects.count(),
        "scores": Score.objects.filter(run_id=run_id).count(),
        "latency": Reply.objects.aggregate(mean=Avg("elapsed_seconds"))["mean"],
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")))
