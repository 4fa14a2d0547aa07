"""Every bench in one go: ``make bench``, or the named ones: ``python -m tools.bench reviewing``.

Prints ratios measured in this run; asserts nothing about time.
"""

from __future__ import annotations

import os
import subprocess
import sys

PARTS = (
    *("judging", "whole", "places", "agreement", "metrics", "files", "importing"),
    *("planning", "retrieval", "starting", "rated", "pages", "reviewing", "keys", "uploads"),
)
ASKED = {  # parts of a module that is a part itself
    "whole": ("judging", "--whole", "--calls", "1600"),
    "places": ("judging", "--latency", "0.2", "--calls", "4000", "--rounds", "1"),
}
ENVIRON = {"places": {"BENCH_PLACES": "128"}}


def main(parts: list[str]) -> None:
    """The judge engine beside bare loops, a whole evaluation and 128 calls at a time, agreement and keyword metrics
    beside theirs, files to a report beside parsing and storing them, the import of judges beside a bare insertion, a
    plan beside reading its answers, retrieval beside its promise, commands beside one of a bare project, agreement and
    correction beside reading what they are made of, a lead's pages and the reviewer's queue beside a bare view, a
    reviewer's keys in a browser and a large upload beside their promises."""
    if unknown := sorted(set(parts) - set(PARTS)):
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for part in parts or PARTS:
        print(f"== tools.bench.{part}", flush=True)
        module, *options = ASKED.get(part, (part,))
        command = [sys.executable, "-m", f"tools.bench.{module}", *options]
        subprocess.run(command, check=True, env=os.environ | ENVIRON.get(part, {}))


if __name__ == "__main__":
    main(sys.argv[1:])
