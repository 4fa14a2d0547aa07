"""``docs/architecture.svg``: the contract over packages as a picture, written by ``python -m tools.plan_picture``.

Each layer of the contract is a row, each package a box with the first sentence of its docstring.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
WIDTH, ROW_HEIGHT, GAP, MARGIN = 1180, 44, 6, 12
COLOURS = {"config": "#e8e8ef", "contrib": "#f7eedc", "evaluation": "#dcebf7", "review": "#e6f2df"}


def contract_layers() -> list[list[str]]:
    """The packages of each line of the contract, from above to below."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract = next(c for c in tools["importlinter"]["contracts"] if c["name"].startswith("Packages"))
    return [[part.strip() for part in re.split(r"[|:]", line)] for line in contract["layers"]]


def purpose(package: str) -> str:
    """The first sentence of the package's first file; empty for a module."""
    init_file = ROOT / package.replace(".", "/") / "__init__.py"
    text = ast.get_docstring(ast.parse(init_file.read_text(encoding="utf-8"))) if init_file.exists() else ""
    sentence = re.split(r"(?<=\.)\s|\n\n", text or "")[0]
    return " ".join(sentence.replace("``", "").rstrip(".:;").split())


def package_box(package: str, x: float, y: float, width: float) -> str:
    """Render a package as a box with its name and, in small letters, its purpose."""
    app, _, _ = package.partition(".")
    summary = purpose(package)
    max_length = max(int(width / 5.6), 1)
    shortened = summary if len(summary) <= max_length else summary[: max_length - 1].rsplit(" ", 1)[0] + " …"
    return (
        f'<g><title>{escape(summary or package)}</title><rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
        f'height="{ROW_HEIGHT - GAP}" rx="4" fill="{COLOURS[app]}" stroke="#8a94a0"/>'
        f'<text x="{x + 7:.0f}" y="{y + 16:.0f}" font-weight="600" font-size="12">{escape(package)}</text>'
        f'<text x="{x + 7:.0f}" y="{y + 30:.0f}" font-size="10" fill="#3c4650">{escape(shortened)}</text></g>'
    )


def render_diagram() -> str:
    """Render the packages of all layers as SVG."""
    lines, boxes = contract_layers(), []
    for number, packages in enumerate(lines):
        width = (WIDTH - 2 * MARGIN + GAP) / len(packages)
        boxes += [
            package_box(name, MARGIN + index * width, GAP + number * ROW_HEIGHT, width - GAP)
            for index, name in enumerate(packages)
        ]
    height = GAP * 2 + ROW_HEIGHT * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" role="img" aria-label="Packages of Concord; an import only goes down">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n' + "\n".join(boxes) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(render_diagram(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)} written\n")
