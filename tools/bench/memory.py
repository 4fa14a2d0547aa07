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


def held(pid: int) -> int:
    """Resident kilobytes of a process; 0 for one that is gone."""
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def main() -> None:
    """Judge, look, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("answers", type=int, nargs="?", default=10_000)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    given = parser.parse_args()
    tenth, total = given.answers // 10, given.answers
    with (
        tempfile.TemporaryDirectory() as folder,
        JudgeServer(latency=0.05, keep_log=False) as judge,
        fresh_database(given.database, Path(folder)) as url,
    ):
        site = Site(Path(folder), url, judge.origin)
        site.environment |= {"SITE_BUDGET_SECONDS": "45", "SITE_LEASE_SECONDS": "90"}
        site.manage("migrate", "--verbosity", "0")
        run = int(site.python("-m", "tests.faults.prepare", str(total), judge.base_url).splitlines()[-1])
        seen: dict[str, tuple[int, int]] = {"first": (0, 0), "last": (0, 0)}
        parent = site.start("manage.py", "serve", "--no-web")
        try:
            while judge.calls < total or site.state(run) != "completed":
                sizes = [held(pid) for pid in descendants(parent.pid) if "qcluster" in command_line(pid)]
                part = "first" if judge.calls <= tenth else "last" if judge.calls > total - tenth else ""
                if part and sizes:
                    most, together = seen[part]
                    seen[part] = max(most, *sizes), max(together, sum(sizes))
                time.sleep(0.2)
        finally:
            site.stop()
        logged = (site.folder / "log").stat().st_size
    for name, (most, together) in seen.items():
        print(f"{name} {tenth} answers: {most / 1024:.0f} MB in one process, {together / 1024:.0f} MB together")
    (most, together), (most_last, together_last) = seen["first"], seen["last"]
    print(f"growth: {most_last / most:.2f} times in one process, {together_last / together:.2f} times together")
    print(f"log: {logged / 1024:.0f} KB for {total} answers")


if __name__ == "__main__":
    main()
