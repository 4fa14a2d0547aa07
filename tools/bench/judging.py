"""The judge engine against a judge with a fixed latency, compared with bare loops that store nothing.

Efficiency = calls x latency / concurrency / wall time, from the start to the last score committed. The contenders take
turns, each in its own process, so that ratios hold on a noisy machine; medians over the rounds are shown.

``--whole`` measures the command ``evaluate`` for as many imported answers, from the start of its process to its end,
including rules, the judges' preflights, the offline baseline and the output: several profiles, and one or two judges at
an endpoint each. ``BENCH_PLACES=128`` sets another concurrency."""

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults.site import ROOT, Site, fresh_database
from tools.bench.bare import CONCURRENCY, LOOPS
from tools.bench.files import write_files

CALLS, LATENCY, ROUNDS = 2000, 0.2, 3  # 1,000 answers with two calls each
Times = dict[str, float]


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


def bare_loop(name: str, base_url: str, calls: int) -> Times:
    """Run one of the bare loops; return its wall and CPU seconds."""
    completed = subprocess.run(
        [sys.executable, "-m", "tools.bench.bare", name, base_url, str(calls)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(completed.stdout))


def engine(kind: str, base_url: str, calls: int, profile: str = "", workers: int = 1) -> Times:
    """Measure the engine on a fresh database with production settings; several ``workers`` share the run."""
    with tempfile.TemporaryDirectory() as folder, fresh_database(kind, Path(folder)) as url:
        site = Site(Path(folder), url, base_url.rsplit("/v1", 1)[0])
        site.environment |= {"SITE_LEASE_SECONDS": "90", "CONCORD_CALL_SECONDS": "60", "DEBUG": "0"}
        site.environment |= {"SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "localhost"}
        site.manage("migrate", "--verbosity", "0")
        run = site.python("-m", "tools.bench.prepare", str(calls), base_url, str(CONCURRENCY)).splitlines()[-1]
        process_times = drain_run(site, run, profile, workers)
        assert max(times["calls"] for times in process_times) == calls, process_times
        return {
            "wall": max(times["ended"] for times in process_times) - min(times["started"] for times in process_times),
            "cpu": sum(times["cpu"] for times in process_times),
        }


# The runs of ``--whole``: name, judges and options of ``evaluate``.
WHOLE_RUNS = (
    ("default profile", ("first",), ()),
    ("default profile without baseline", ("first",), ("--no-baseline",)),
    ("graphrag", ("first",), ("--profile=graphrag",)),
    ("graphrag, one endpoint without baseline", ("first",), ("--profile=graphrag", "--no-baseline")),
    ("graphrag, two endpoints without baseline", ("first", "second"), ("--profile=graphrag", "--no-baseline")),
    ("default profile, 40 answers", ("first",), ("--limit=40",)),
    ("default profile, baseline only", ("baseline",), ()),
)


def measure_evaluate(kind: str, base_urls: Sequence[str], answers: int, latency: float) -> None:
    """Print the times of ``evaluate`` as a whole, one run after the other on a fresh database."""
    with tempfile.TemporaryDirectory() as folder, fresh_database(kind, Path(folder)) as url:
        site = Site(Path(folder), url, ",".join(base_url.rsplit("/v1", 1)[0] for base_url in base_urls))
        site.environment |= {"DEBUG": "0", "SECRET_KEY": secrets.token_urlsafe(64), "ALLOWED_HOSTS": "localhost"}
        site.manage("migrate", "--verbosity", "0")
        question_file, answer_file = write_files(Path(folder), answers)
        site.manage("import_questions", str(question_file), "--name", "bench")
        site.manage("import_answers", str(answer_file), "--questions", "bench", "--system", "bench")
        site.python("-m", "tools.bench.prepare", "--judges", str(CONCURRENCY), *base_urls)
        for name, judges, options in WHOLE_RUNS:
            command = ["evaluate", "--questions=bench", "--system=bench", "--no-ask", "--no-cache", *options]
            calls_before, start, cpu_before = answered_calls(base_urls), time.monotonic(), _children_cpu_seconds()
            site.manage(*command, f"--max-concurrency={CONCURRENCY}", *(f"--judge={judge}" for judge in judges))
            wall, calls = time.monotonic() - start, answered_calls(base_urls) - calls_before
            cpu, ideal = _children_cpu_seconds() - cpu_before, calls / len(judges) * latency / CONCURRENCY
            print(
                f"evaluate, {kind}, {name}: {calls} calls in {wall:.1f} s, {cpu:.1f} s of processor time"
                + (f", efficiency {ideal / wall:.3f}" if calls else ""),
                flush=True,
            )


def answered_calls(base_urls: Sequence[str]) -> int:
    """Return the number of calls the judges have answered so far, without preflight calls."""
    calls = 0
    for base_url in base_urls:
        with urllib.request.urlopen(base_url.rsplit("/v1", 1)[0] + "/control/stats") as answer:
            calls += int(json.load(answer)["calls"])
    return calls


def _children_cpu_seconds() -> float:
    """Seconds of processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def drain_run(site: Site, run: str, profile: str, workers: int) -> list[Times]:
    """Drain a run with several processes and return the times of each."""
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


def databases() -> list[str]:
    """Return the available databases."""
    return ["sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])]


def measure(calls: int = CALLS, latency: float = LATENCY, rounds: int = ROUNDS, workers: int = 1) -> dict[str, Times]:
    """Return the median wall and CPU seconds of each contender, the engine with one worker and with ``workers``."""
    times_by_name: dict[str, list[Times]] = defaultdict(list)
    with judge_process(latency) as base_url:
        for _ in range(rounds):
            for name in LOOPS:
                times_by_name[f"bare {name}"].append(bare_loop(name, base_url, calls))
            for kind in databases():
                times_by_name[f"engine, {kind}"].append(engine(kind, base_url, calls))
                if workers > 1:
                    several = engine(kind, base_url, calls, workers=workers)
                    times_by_name[f"engine, {kind}, {workers} workers"].append(several)
    return {
        name: {clock: statistics.median(times[clock] for times in several) for clock in ("wall", "cpu")}
        for name, several in times_by_name.items()
    }


def report(calls: int, latency: float, rounds: int, workers: int = 1) -> None:
    """Measure and print, each with its ratio to the bare ``AsyncOpenAI`` loop."""
    medians = measure(calls, latency, rounds, workers)
    yardstick = medians["bare AsyncOpenAI"]
    ideal = calls * latency / CONCURRENCY
    print(f"{calls} calls, {latency * 1000:g} ms, {CONCURRENCY} at a time, median of {rounds} rounds", flush=True)
    for name, times in medians.items():
        efficiency = f"efficiency {ideal / times['wall']:.3f}, " if latency else ""
        print(
            f"{name}: {efficiency}{calls / times['wall']:.0f} calls/s, {1000 * times['cpu'] / calls:.2f} ms "
            f"CPU per call"
            f" (x {times['cpu'] / yardstick['cpu']:.2f} of bare AsyncOpenAI)",
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
    options = parser.parse_args()
    if options.profile:
        with judge_process(LATENCY) as base_url:
            print(engine("sqlite", base_url, options.calls, options.profile))
        return
    if options.whole:
        with judge_process(LATENCY) as first_url, judge_process(LATENCY) as second_url:
            for kind in databases():
                measure_evaluate(kind, (first_url, second_url), options.calls, LATENCY)
        return
    for latency in options.latency or [LATENCY, 0.0]:
        report(options.calls, latency, options.rounds, options.workers)


if __name__ == "__main__":
    main()
