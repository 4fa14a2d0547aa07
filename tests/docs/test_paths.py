"""Paths that the pages for contributors name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STARTS = ("config/", "contrib/", "docs/", "evaluation/", "review/", "templates/", "tests/", "tools/")
# A recipe's own name stands in capitals.
MADE_UP = re.compile(r"[A-Z]{3,}|\*")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md", "contrib/README.md", "README.md"])
def test_printed_paths_exist(page: str) -> None:
    printed_paths = re.findall(r"`([\w./-]+)`", (ROOT / page).read_text(encoding="utf-8"))
    paths = [path for path in printed_paths if path.startswith(STARTS) and not MADE_UP.search(path)]
    assert [path for path in paths if not (ROOT / path).exists()] == []
