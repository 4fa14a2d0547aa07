"""The judge engine against a judge with a fixed latency, beside a bare loop that stores nothing.

Efficiency = calls x latency / concurrency / wall time. Both halves run in one go, so that ratios hold on a noisy
machine.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, DefaultAioHttpClient

from tests.faults.site import ROOT, Site, fresh_database

CALLS, LATENCY, CONCURRENCY = 2000, 0.2, 32


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


def cpu_of_children() -> float:
    """Seconds of CPU that ended child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bare_loop(base_url: str, calls: int) -> tuple[float, float]:
    """Wall and CPU seconds of the SDK in a loop, over the same transport, storing nothing."""

    async def go() -> None:
        gate = asyncio.Semaphore(CONCURRENCY)
        http = DefaultAioHttpClient(trust_env=False)
        async with AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0, http_client=http) as client:

            async def one() -> None:
                async with gate:
                    await client.chat.completions.create(
                        model="test-model", messages=[{"role": "user", "content": "rate this " * 120}]
                    )

            await asyncio.gather(*(one() for _ in range(calls)))

    wall, cpu = time.monotonic(), time.process_time()
    asyncio.run(go())
    return time.monotonic() - wall, time.process_time() - cpu


def engine(kind: str, base_url: str, calls: int) -> tuple[float, float]:
    """Wall seconds from the start of the run to its last score, and CPU seconds of the draining process."""
    with tempfile.TemporaryDirectory() as folder, fresh_database(kind, Path(folder)) as url:
        site = Site(Path(folder), url, base_url.rsplit("/v1", 1)[0])
        site.environment |= {"CONCORD_LEASE_SECONDS": "90", "CONCORD_CALL_SECONDS": "60"}
        site.manage("migrate", "--verbosity", "0")
        run = site.python("-m", "tests.bench.prepare", str(calls), base_url, str(CONCURRENCY)).splitlines()[-1]
        before = cpu_of_children()
        site.manage("drain", run)
        idle = cpu_of_children()
        site.manage("drain", run)  # nothing left to do: what starting the process costs
        start_up = cpu_of_children() - idle
        span = site.rows(
            "SELECT MIN(a.created_at), MAX(s.created_at) FROM evaluation_attempt a, evaluation_score s "
            f"WHERE s.run_id = {run} AND s.judge_version_id IS NOT NULL"
        )[0]
        first, last = (datetime.fromisoformat(str(moment)) for moment in span)
        return (last - first).total_seconds(), idle - before - start_up


def measure(calls: int = CALLS, latency: float = LATENCY) -> dict[str, Any]:
    """Efficiency and CPU milliseconds per call of the bare loop and of the engine on each database."""
    kinds = ["sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])]
    ideal = calls * latency / CONCURRENCY
    found: dict[str, Any] = {}
    with judge_process(latency) as base_url:
        for name, (wall, cpu) in [("bare loop", bare_loop(base_url, calls))] + [
            (f"engine, {kind}", engine(kind, base_url, calls)) for kind in kinds
        ]:
            found[name] = {"efficiency": ideal / wall, "cpu_ms_per_call": 1000 * cpu / calls, "wall": wall}
    return found
