"""The architecture: every package is in the contract, and files and functions stay within their size limits."""

from __future__ import annotations

import ast
import re
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


def test_contract_names_exactly_the_existing_packages() -> None:
    packages_in_apps = {
        module_of(path)
        for app in ("evaluation", "review")
        for entry in (ROOT / app).iterdir()
        if (path := entry / "__init__.py" if entry.is_dir() else entry).suffix == ".py"
        and path.exists()
        and entry.name not in {"__init__.py", "migrations"}
    }
    assert {name for line in contract() for name in line} == {"config", "contrib", *packages_in_apps}
    assert len(contract()) <= MOST_LAYERS


def test_app_root_holds_only_modules_django_expects() -> None:
    loose = {path.name for app in ("evaluation", "review") for path in (ROOT / app).glob("*.py")}
    assert loose <= {
        *("__init__.py", "admin.py", "api_urls.py", "apps.py", "checks.py", "extensions.py", "feature.py", "tasks.py"),
        "urls.py",
    }


def test_every_package_has_a_docstring() -> None:
    """In three to ten lines of its first file; entrances and the parts of a package may be shorter."""
    init_files = [ROOT / app / part / "__init__.py" for app in ("evaluation", "review") for part in packages(app)]
    silent = [str(path.relative_to(ROOT)) for path in init_files if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def packages(app: str) -> list[str]:
    names = {name.split(".")[1] for line in contract() for name in line if name.startswith(f"{app}.")}
    return sorted(name for name in names if (ROOT / app / name).is_dir())


def size_violations(path: Path) -> Iterator[str]:
    """Yield functions of a module beyond the size limit, and modules with catch-all names."""
    text = path.read_text(encoding="utf-8")
    if path.stem in FORBIDDEN_NAMES:
        yield f"{path.relative_to(ROOT)}: says nothing"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{path.relative_to(ROOT)}: {node.name}: {lines} lines"


def test_functions_stay_within_size_limits() -> None:
    assert [problem for path in sources() for problem in size_violations(path)] == []


def test_only_two_signals_and_one_contract_file_exist() -> None:
    modules = [module_of(path) for path in sources() if re.search(r"= (\w+\.)?Signal\(", path.read_text())]
    assert modules == ["evaluation.accounts.access", "review.comparisons.signals"]
    assert not (ROOT / ".importlinter").exists()
    assert not (ROOT / "setup.cfg").exists()
