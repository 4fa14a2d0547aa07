"""Pages that fetch parts of themselves load the script that does it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_pages_with_requests_of_their_own_load_htmx() -> None:
    files = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("contrib/*/templates/**/*.html")]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    pages = {file: text for file, text in texts.items() if "{% extends" in text and "hx-get" in text}
    assert len(pages) >= 4
    assert [str(file.relative_to(ROOT)) for file, text in pages.items() if "{% htmx_script %}" not in text] == []
