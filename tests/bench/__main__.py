"""Every bench in one go: ``make bench``. Prints ratios measured in this run; asserts nothing about time."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.judging import measure


def main() -> None:
    """The judge engine beside a bare loop, then agreement and keyword metrics beside theirs."""
    print("== judge engine (ideal time / wall time, client CPU per call)", flush=True)
    for name, found in measure().items():
        print(f"{name}: efficiency {found['efficiency']:.2f}, {found['cpu_ms_per_call']:.2f} ms CPU per call")
    for module in ("tests.bench.agreement", "tests.bench.metrics"):
        print(f"== {module}", flush=True)
        subprocess.run([sys.executable, "-m", module], check=True)


if __name__ == "__main__":
    main()
