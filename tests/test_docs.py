"""Documentation that would lie fails the build."""

from __future__ import annotations

from pathlib import Path

from config.environment import KNOWN

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_every_setting_is_documented_with_its_meaning() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    assert set(rows) == set(KNOWN)
    assert [name for name, (_, _, meaning) in KNOWN.items() if meaning not in rows[name]] == []
