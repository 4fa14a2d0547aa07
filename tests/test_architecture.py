"""The plan of the house: every package stands in the contract, and files and functions stay within their budget."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("config", "contrib", "evaluation", "review")
LONGEST_FUNCTION = 60
MOST_LAYERS = 21
FORBIDDEN_NAMES = {"utils", "helpers", "misc", "common"}


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not {"migrations", "tests"} & set(path.parts):
                yield path


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def contract() -> list[list[str]]:
    """The lines of the contract over packages, from above to below."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c for c in contracts if c["name"].startswith("Packages"))["layers"]
    return [[part.strip() for part in line.split("|")] for line in layers]


def test_the_contract_names_every_package_and_nothing_else() -> None:
    """So that no package stands outside it, and a new file needs no new line."""
    inside = {
        module_of(path)
        for app in ("evaluation", "review")
        for place in (ROOT / app).iterdir()
        if (path := place / "__init__.py" if place.is_dir() else place).suffix == ".py"
        and path.exists()
        and place.name not in {"__init__.py", "migrations"}
    }
    assert {name for line in contract() for name in line} == {"config", "contrib", *inside}
    assert len(contract()) <= MOST_LAYERS


def test_at_the_top_of_an_app_lies_only_what_django_looks_for() -> None:
    loose = {path.name for app in ("evaluation", "review") for path in (ROOT / app).glob("*.py")}
    assert loose <= {
        *("__init__.py", "admin.py", "api_urls.py", "apps.py", "checks.py", "extensions.py", "feature.py", "tasks.py"),
        "urls.py",
    }


def test_every_package_says_what_it_is_for() -> None:
    """In three to ten lines of its first file; entrances and the parts of a package may be shorter."""
    first = [ROOT / app / part / "__init__.py" for app in ("evaluation", "review") for part in packages(app)]
    silent = [str(path.relative_to(ROOT)) for path in first if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def packages(app: str) -> list[str]:
    names = {name.split(".")[1] for line in contract() for name in line if name.startswith(f"{app}.")}
    return sorted(name for name in names if (ROOT / app / name).is_dir())


def beyond_budget(path: Path) -> Iterator[str]:
    """What is too long in a file, or named so that anything fits in."""
    text = path.read_text(encoding="utf-8")
    if path.stem in FORBIDDEN_NAMES:
        yield f"{path.relative_to(ROOT)}: says nothing"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{path.relative_to(ROOT)}: {node.name}: {lines} lines"


def test_functions_stay_within_their_budget() -> None:
    assert [found for path in sources() for found in beyond_budget(path)] == []


def test_there_is_one_signal_and_no_second_contract_file() -> None:
    signals = [p for p in sources() if "django.dispatch" in p.read_text() or ".signals" in p.read_text()]
    assert [module_of(path) for path in signals] == ["evaluation.accounts.access"]
    assert not (ROOT / ".importlinter").exists()
    assert not (ROOT / "setup.cfg").exists()
