"""The command describes installed own metrics as the page of metrics does."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from django.core.management import call_command

from tests.own_metrics import Register, write_package


def test_command_describes_own_metrics(tmp_path: Path, register: Register) -> None:
    register(write_package(tmp_path, version="1.2"))
    output = StringIO()
    call_command("own_metrics", stdout=output)
    assert output.getvalue().startswith("## metrics.py 1.2 ")
    assert "### `word_count_share`: word_count_share / word_count_share\n\na formula.\n\n수식." in output.getvalue()
    assert "| 0 to 1 | higher | – | – | anchored levels | 1 | ours | – |" in output.getvalue()


def test_command_without_packages_says_so() -> None:
    output = StringIO()
    call_command("own_metrics", stderr=output)
    assert "No package of own metrics is installed." in output.getvalue()
