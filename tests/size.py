"""How large the product is beside its limits in ``pyproject.toml``: ``python -m tests.size`` fails above one of them.

Counted are the Python files of ``config``, ``evaluation`` and ``review`` without migrations, with their blank lines,
and the lines of the contract over packages.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def sizes() -> dict[str, int]:
    """Layers of the contract, files, lines and kilobytes (1,000 bytes, blank lines left out) as they are."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract = next(c for c in tools["importlinter"]["contracts"] if c["name"].startswith("Packages"))
    files = [
        path
        for package in ("config", "evaluation", "review")
        for path in (ROOT / package).rglob("*.py")
        if "migrations" not in path.parts
    ]
    lines = [line for path in files for line in path.read_bytes().splitlines(keepends=True)]
    written = sum(len(line) for line in lines if line.strip())
    return {"layers": len(contract["layers"]), "files": len(files), "lines": len(lines), "kilobytes": written // 1000}


def limits() -> dict[str, int]:
    """The limits by the same names."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return dict(tools["concord"]["limits"])


def main() -> int:
    """Print each size beside its limit; 1 where one is above it."""
    found, most = sizes(), limits()
    for name, size in found.items():
        print(f"{name:<10}{size:>8,} of {most[name]:,}{'' if size <= most[name] else '  TOO MANY'}")
    return int(any(size > most[name] for name, size in found.items()))


if __name__ == "__main__":
    sys.exit(main())
