"""Figures in the documentation: ``python -m tests.docs.figures`` computes them again and writes them into the pages.

A page marks where they go:

- ``<!-- value: NAME -->0.692`` within a sentence,
- ``<!-- figures: NAME -->`` above a table whose second column is computed for the name in the first,
- ``<!-- table: NAME -->`` above a table whose rows are computed; its heading is the page's.

A number keeps the decimals it has in the page. ``tests/docs/computed.py`` computes them, from tables marked
``<!-- data: NAME -->`` where an example has data of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"en": 0, "ko": 1}
KOREAN = "\n# 한국어\n"

Value = float | str | None
Computed = Mapping[str, Value | Mapping[str, Value] | Sequence[str]]


def page_in_language(page: str, language: str) -> str:
    """The text of a page in one language."""
    return (DOCS / page).read_text(encoding="utf-8").split(KOREAN)[LANGUAGES[language]]


def split_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(text: str, marker: str) -> list[list[str]]:
    """The cells of the table under a marker, without its heading."""
    block = text.split(f"<!-- {marker} -->\n", 1)[1].split("\n\n", 1)[0]
    return [split_cells(line) for line in block.splitlines()[2:]]


def format_value(value: Value, printed: str) -> str:
    """The value with as many decimals, and a percent sign, as the page shows."""
    if value is None:
        raise ValueError(f"no value where the page says {printed!r}")
    if isinstance(value, str):
        return value
    digits = len(printed.rstrip("%").partition(".")[2])
    return f"{value:,.{digits}{'%' if printed.endswith('%') else 'f'}}"


def refresh_text(text: str, computed: Computed) -> str:
    """The text with every figure as computed. Raises ``KeyError`` for a marker that nothing computes."""

    def write_value(match: re.Match[str]) -> str:
        return match[1] + format_value(computed[match[2]], match[3])  # type: ignore[arg-type]

    def write_table(match: re.Match[str]) -> str:
        marker, kind, name, heading, rows = match.groups()
        content = computed[name]
        if kind == "table":
            return marker + heading + "".join(f"{row}\n" for row in content)  # type: ignore[union-attr]
        lines = [re.match(r"(\| `?(\w+)`? \| )([^|]*?)( \|.*)", row) for row in rows.splitlines()]
        values = [format_value(content[line[2]], line[3]) for line in lines if line]  # type: ignore[index,call-overload]
        assert len(values) == len(lines), f"a row of {name} has no name"
        return (
            marker
            + heading
            + "".join(f"{line[1]}{value}{line[4]}\n" for line, value in zip(lines, values, strict=True) if line)
        )

    text = re.sub(r"(<!-- (figures|table): (\w+) -->\n)(\|.*\n\|[-|]+\n)((?:\|.*\n)*)", write_table, text)
    return re.sub(r"(<!-- value: (\w+) -->)(-?[\d.,]*\d%?(?:–[\d–, ]*\d)?|[a-z_]+)", write_value, text)


def refresh_page(page: str, compute: Callable[[str], Computed]) -> str:
    """A page with the figures of each of its languages."""
    texts = (DOCS / page).read_text(encoding="utf-8").split(KOREAN)
    return KOREAN.join(refresh_text(text, compute(text)) for text in texts)


def main() -> None:
    """Write the figures of every page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from tests.docs.computed import PAGES

    for page, compute in PAGES.items():
        (DOCS / page).write_text(refresh_page(page, compute), encoding="utf-8")


if __name__ == "__main__":
    main()
