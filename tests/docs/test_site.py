"""The documentation as a site: every page can be reached, and the page of commands is fresh."""

from __future__ import annotations

import re
from pathlib import Path

from tools.commands_page import PAGE, commands_page

ROOT = Path(__file__).resolve().parents[2]


def test_site_lists_every_page() -> None:
    listed = set(re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("decisions/0")} - listed == set()


def test_first_page_links_every_page() -> None:
    first_page = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in first_page} == set()


def test_page_of_commands_matches_their_help() -> None:
    assert commands_page() == PAGE.read_text(encoding="utf-8"), "stale: python -m tools.commands_page"


def test_commands_page_lists_gate_options_and_verbs() -> None:
    """The options of the gate are a group of their own, and those of verbs have their own help."""
    sections = {section.partition("\n")[0]: section for section in commands_page().split("\n## ")}
    assert "--fail-under X" in sections["evaluate"]
    assert "--run ID" in sections["gold_set"].partition("### gold_set create\n")[2].partition("###")[0]
    assert "--traceback" not in sections["evaluate"]
