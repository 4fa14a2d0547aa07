"""Every bench in one go: ``make bench``, or the named ones: ``python -m tools.bench reviewing``.

Prints ratios measured in this run; asserts nothing about time.
"""

from __future__ import annotations

import os
import subprocess
import sys

BENCHES = (
    *("judging", "whole", "places", "agreement", "metrics", "files", "importing"),
    *("planning", "retrieval", "starting", "rated", "pages", "reviewing", "keys", "uploads"),
)
BENCH_OPTIONS = {  # parts of a module that is a part itself
    "whole": ("judging", "--whole", "--calls", "1600"),
    "places": ("judging", "--latency", "0.2", "--calls", "4000", "--rounds", "1"),
}
ENVIRON = {"places": {"BENCH_PLACES": "128"}}


def main(names: list[str]) -> None:
    """Run the named benches, or all of them."""
    if unknown := sorted(set(names) - set(BENCHES)):
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    for name in names or BENCHES:
        print(f"== tools.bench.{name}", flush=True)
        module, *options = BENCH_OPTIONS.get(name, (name,))
        command = [sys.executable, "-m", f"tools.bench.{module}", *options]
        subprocess.run(command, check=True, env=os.environ | ENVIRON.get(name, {}))


if __name__ == "__main__":
    main(sys.argv[1:])
