"""The command line as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command

from evaluation.management.command_line import run_command
from evaluation.storage.versions import product_version


@pytest.mark.parametrize("argument", ["--version", "version"])
def test_version_is_that_of_the_product(argument: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.argv", ["concord", argument])
    run_command()
    assert capsys.readouterr().out == f"{product_version()}\n"


def test_version_of_a_command_is_that_of_the_product(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        call_command("results", "--version")
    assert capsys.readouterr().out == f"{product_version()}\n"
