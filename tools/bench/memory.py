"""Memory of workers while a run is judged: ``python -m tools.bench.memory [ANSWERS] [--database postgres]``.

Prints the most that any worker process held, and all of them together, while the first tenth of the answers was judged
and while the last tenth was; 10,000 answers without a number. A worker is replaced after 200 messages, so the processes
at the end may be younger than those at the beginning: the aim is at most 1.2 times. Says how much was logged as well.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

from tests.faults.site import Site, command_line, descendants, fresh_database
from tests.judge_server import JudgeServer


def resident_kilobytes(pid: int) -> int:
    """Resident kilobytes of a process; 0 for one that is gone."""
    try:
        match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(match[1]) if match else 0


def main() -> None:
    """Judge, look, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("answers", type=int, nargs="?", default=10_000)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    tenth, total = options.answers // 10, options.answers
    with (
        tempfile.TemporaryDirectory() as folder,
        JudgeServer(latency=0.05, keep_log=False) as judge,
        fresh_database(options.database, Path(folder)) as url,
    ):
        site = Site(Path(folder), url, judge.origin)
        site.environment |= {"SITE_TASK_SECONDS": "45", "SITE_LEASE_SECONDS": "90"}
        site.manage("migrate", "--verbosity", "0")
        run = int(site.python("-m", "tests.faults.prepare", str(total), judge.base_url).splitlines()[-1])
        peaks: dict[str, tuple[int, int]] = {"first": (0, 0), "last": (0, 0)}
        parent = site.start("manage.py", "serve", "--no-web")
        try:
            while judge.calls < total or site.state(run) != "completed":
                sizes = [resident_kilobytes(pid) for pid in descendants(parent.pid) if "qcluster" in command_line(pid)]
                phase = "first" if judge.calls <= tenth else "last" if judge.calls > total - tenth else ""
                if phase and sizes:
                    largest, total_size = peaks[phase]
                    peaks[phase] = max(largest, *sizes), max(total_size, sum(sizes))
                time.sleep(0.2)
        finally:
            site.stop()
        logged = (site.folder / "log").stat().st_size
    for name, (largest, total_size) in peaks.items():
        print(f"{name} {tenth} answers: {largest / 1024:.0f} MB in one process, {total_size / 1024:.0f} MB together")
    (largest, total_size), (largest_last, total_last) = peaks["first"], peaks["last"]
    print(f"growth: {largest_last / largest:.2f} times in one process, {total_last / total_size:.2f} times together")
    print(f"log: {logged / 1024:.0f} KB for {total} answers")


if __name__ == "__main__":
    main()
