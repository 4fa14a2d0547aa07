"""The house keeps its floors: every module is listed in the contracts, and files and functions stay small."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("config", "evaluation", "review")
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
FORBIDDEN_NAMES = {"utils", "helpers", "misc", "common"}


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def listed(*, optional: bool = True) -> set[str]:
    """Every module or package named in the flat contract, with those in parentheses unless told otherwise."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    flat = next(c for c in contracts if c["name"].startswith("Floors"))
    parts = {part.strip() for layer in flat["layers"] for part in layer.replace("|", ":").split(":")}
    return {part.strip("()") for part in parts if optional or not part.startswith("(")}


def test_every_module_lies_under_a_floor() -> None:
    floors = listed()
    outside = [
        name
        for path in sources()
        if (name := module_of(path)) not in PACKAGES
        and path.name != "__init__.py"
        and not any(name == floor or name.startswith(f"{floor}.") for floor in floors)
    ]
    assert outside == []


def test_every_listed_floor_exists() -> None:
    modules = {module_of(path) for path in sources()}
    assert sorted(floor for floor in listed(optional=False) if floor not in modules) == []


@pytest.mark.parametrize("path", list(sources()), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_within_their_budget(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    assert path.stem not in FORBIDDEN_NAMES
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


def test_there_are_no_signals_and_no_second_contract_file() -> None:
    assert [str(p) for p in sources() if "django.dispatch" in p.read_text() or ".signals" in p.read_text()] == []
    assert not (ROOT / ".importlinter").exists()
    assert not (ROOT / "setup.cfg").exists()
