"""The judge engine against a judge with a fixed latency, beside bare loops that store nothing.

Efficiency = calls x latency / concurrency / wall time, from the start to the last score committed. The contenders take
turns, each in a process of its own, so that ratios hold on a noisy machine; medians over the rounds are shown.

With ``--whole`` the command ``evaluate`` as a person starts it, for as many answers: from the start of its process to
its end, rules, trying the judge out, the offline baseline beside it and what is printed included.
``BENCH_PLACES=128`` is another number of places.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.site import ROOT, Site, fresh_database
from tools.bench.bare import CONCURRENCY, LOOPS

CALLS, LATENCY, ROUNDS = 2000, 0.2, 3  # 1,000 answers with two calls each
Taken = dict[str, float]


@contextmanager
def judge_process(latency: float) -> Iterator[str]:
    """A judge server in a process of its own, so that its CPU time is not the client's."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.judge_server", "--port", "0", "--latency", str(latency)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def bare_loop(name: str, base_url: str, calls: int) -> Taken:
    """What one of the bare loops takes."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.bare", name, base_url, str(calls)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def engine(kind: str, base_url: str, calls: int, profile: str = "", workers: int = 1) -> Taken:
    """What the engine takes on a fresh database, with the settings of production; several ``workers`` share the run."""
    with tempfile.TemporaryDirectory() as folder, fresh_database(kind, Path(folder)) as url:
        site = Site(Path(folder), url, base_url.rsplit("/v1", 1)[0])
        site.environment |= {"SITE_LEASE_SECONDS": "90", "CONCORD_CALL_SECONDS": "60", "DEBUG": "0"}
        site.environment |= {"SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "localhost"}
        site.manage("migrate", "--verbosity", "0")
        run = site.python("-m", "tools.bench.prepare", str(calls), base_url, str(CONCURRENCY)).splitlines()[-1]
        taken = drained(site, run, profile, workers)
        assert max(one["calls"] for one in taken) == calls, taken
        return {
            "wall": max(one["ended"] for one in taken) - min(one["started"] for one in taken),
            "cpu": sum(one["cpu"] for one in taken),
        }


def whole(kind: str, base_url: str, answers: int, latency: float) -> None:
    """Print what ``evaluate`` takes in all on a fresh database."""
    with tempfile.TemporaryDirectory() as folder, fresh_database(kind, Path(folder)) as url:
        site = Site(Path(folder), url, base_url.rsplit("/v1", 1)[0])
        site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "localhost"}
        site.manage("migrate", "--verbosity", "0")
        told = site.python("-m", "tools.bench.prepare", str(answers), base_url, str(CONCURRENCY), "--no-run")
        words = zip(("project", "questions", "system"), told.split(), strict=True)
        options = [f"--{name}={word}" for name, word in words]
        before, started, worked = asked(base_url), time.monotonic(), _worked()
        site.manage("evaluate", *options, "--profile=graphrag", "--judge=remote", f"--max-concurrency={CONCURRENCY}")
        wall, calls, cpu = time.monotonic() - started, asked(base_url) - before, _worked() - worked
    print(
        f"evaluate, {kind}: {answers} answers, {calls} calls in {wall:.1f} s, {cpu:.1f} s of processor time, "
        f"efficiency {calls * latency / CONCURRENCY / wall:.3f}",
        flush=True,
    )


def asked(base_url: str) -> int:
    """The calls that the judge has answered so far, without those that try it out."""
    with urllib.request.urlopen(base_url.rsplit("/v1", 1)[0] + "/control/stats") as answer:
        return int(json.load(answer)["calls"])


def _worked() -> float:
    """Seconds of processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def drained(site: Site, run: str, profile: str, workers: int) -> list[Taken]:
    """What each of the processes took that drained a run together."""
    command = [sys.executable, "-m", "tools.bench.draining", run, profile]
    processes = [
        subprocess.Popen(
            command, cwd=ROOT, env=site.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(workers)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]


def kinds() -> list[str]:
    """The databases there are."""
    return ["sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])]


def measure(calls: int = CALLS, latency: float = LATENCY, rounds: int = ROUNDS, workers: int = 1) -> dict[str, Taken]:
    """For each contender the medians: wall and CPU seconds. The engine with one worker, and with ``workers``."""
    taken: dict[str, list[Taken]] = defaultdict(list)
    with judge_process(latency) as base_url:
        for _ in range(rounds):
            for name in LOOPS:
                taken[f"bare {name}"].append(bare_loop(name, base_url, calls))
            for kind in kinds():
                taken[f"engine, {kind}"].append(engine(kind, base_url, calls))
                if workers > 1:
                    several = engine(kind, base_url, calls, workers=workers)
                    taken[f"engine, {kind}, {workers} workers"].append(several)
    return {
        name: {what: statistics.median(one[what] for one in several) for what in ("wall", "cpu")}
        for name, several in taken.items()
    }


def report(calls: int, latency: float, rounds: int, workers: int = 1) -> None:
    """Measure and print, each beside the bare ``AsyncOpenAI`` loop."""
    found = measure(calls, latency, rounds, workers)
    yardstick = found["bare AsyncOpenAI"]
    ideal = calls * latency / CONCURRENCY
    print(f"{calls} calls, {latency * 1000:g} ms, {CONCURRENCY} at a time, median of {rounds} rounds", flush=True)
    for name, took in found.items():
        efficiency = f"efficiency {ideal / took['wall']:.3f}, " if latency else ""
        print(
            f"{name}: {efficiency}{calls / took['wall']:.0f} calls/s, {1000 * took['cpu'] / calls:.2f} ms CPU per call"
            f" (x {took['cpu'] / yardstick['cpu']:.2f} of bare AsyncOpenAI)",
            flush=True,
        )


def main() -> None:
    """Both latencies, or what the options say."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.judging", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--latency", type=float, action="append", help="seconds; default 0.2 and 0")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--workers", type=int, default=1, help="measure so many processes that share a run too")
    parser.add_argument("--whole", action="store_true", help="measure the command evaluate, from its start to its end")
    parser.add_argument("--profile", default="", help="profile the ledger's thread into this file, on SQLite alone")
    given = parser.parse_args()
    if given.profile:
        with judge_process(LATENCY) as base_url:
            print(engine("sqlite", base_url, given.calls, given.profile))
        return
    if given.whole:
        with judge_process(LATENCY) as base_url:
            for kind in kinds():
                whole(kind, base_url, given.calls, LATENCY)
        return
    for latency in given.latency or [LATENCY, 0.0]:
        report(given.calls, latency, given.rounds, given.workers)


if __name__ == "__main__":
    main()
