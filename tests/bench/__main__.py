"""Every bench in one go: ``make bench``, or the named ones: ``python -m tests.bench reviewing``.

Prints ratios measured in this run; asserts nothing about time.
"""

from __future__ import annotations

import subprocess
import sys

PARTS = (
    *("judging", "agreement", "metrics", "files", "importing"),
    *("planning", "retrieval", "starting", "rated", "pages", "reviewing", "keys", "uploads"),
)


def main(parts: list[str]) -> None:
    """The judge engine beside bare loops, agreement and keyword metrics beside theirs, files to a report beside parsing
    and storing them, the import of judges beside a bare insertion, a plan beside reading its answers, retrieval beside
    its promise, commands beside one of a bare project, agreement and correction beside reading what they are made of, a
    lead's pages and the reviewer's queue beside a bare view, a reviewer's keys in a browser and a large upload beside
    their promises."""
    if unknown := sorted(set(parts) - set(PARTS)):
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for part in parts or PARTS:
        print(f"== tests.bench.{part}", flush=True)
        subprocess.run([sys.executable, "-m", f"tests.bench.{part}"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
